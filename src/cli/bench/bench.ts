/** `granary bench`: chooses the measurement and prints its figures. */
import { GranaryError } from "../../assert";
import { type FlagValues, refusePositionals } from "../parse-flags";
import type { Runtime } from "../runtime";
import { benchServe } from "./http-load";
import { describeFailures, type Measurement } from "./measurement";
import { benchLatency, benchThroughput } from "./offline-benches";
import { formatFigures } from "./statistics";

type Benchmark = (flags: FlagValues, runtime: Runtime) => Measurement | Promise<Measurement>;

const kinds: Readonly<Record<string, Benchmark>> = {
  throughput: benchThroughput,
  latency: benchLatency,
  serve: benchServe,
};

export async function bench(
  flags: FlagValues,
  positionals: readonly string[],
  runtime: Runtime,
): Promise<number> {
  const [kind = "", ...others] = positionals;
  const measure = Object.hasOwn(kinds, kind) ? kinds[kind] : undefined;
  if (measure === undefined) {
    throw new GranaryError("usage", `granary bench takes one of ${Object.keys(kinds).join(", ")}`);
  }
  refusePositionals(others);
  const { figures, failures } = await measure(flags, runtime);
  runtime.out(formatFigures(figures, flags.isSet("json")));
  runtime.err(describeFailures(failures));
  return failures.length === 0 ? 0 : 1;
}
