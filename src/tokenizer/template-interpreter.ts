/**
 * Runs a parsed chat template within bounds: every evaluated node counts against a budget, ranges and texts
 * have a largest size, so that a template that never ends is an error of that request and not of the server.
 */
import { Environment, Interpreter, type parse } from "@huggingface/jinja";
import { GranaryError, messageOf } from "../assert";
import { maxTemplateDepth, maxTemplateSteps, maxTemplateTextLength } from "../limits";

export type TemplateProgram = ReturnType<typeof parse>;
type Statement = Parameters<Interpreter["evaluate"]>[0];
type RuntimeValue = ReturnType<Interpreter["evaluate"]>;

/** What the template itself says against its input, or what it cannot do. */
export class TemplateError extends GranaryError {
  constructor(message: string) {
    super("template_error", message);
  }
}

class BoundedInterpreter extends Interpreter {
  #stepsLeft: number;
  #depth = 0;

  constructor(environment: Environment, maxSteps: number) {
    super(environment);
    this.#stepsLeft = maxSteps;
  }

  takeSteps(count: number): void {
    this.#stepsLeft -= count;
    if (!(this.#stepsLeft >= 0)) throw new TemplateError("the chat template does not come to an end");
  }

  override evaluate(statement: Statement, environment: Environment): RuntimeValue {
    this.takeSteps(1);
    if (this.#depth === maxTemplateDepth) throw new TemplateError("the chat template nests too deeply");
    this.#depth += 1;
    const value = this.#evaluateBelow(statement, environment);
    if (value.type === "StringValue" && (value.value as string).length > maxTemplateTextLength) {
      throw new TemplateError("the chat template makes too long a text");
    }
    return value;
  }

  /** `break` and `continue` leave by throwing, so the depth is put right in every case. */
  #evaluateBelow(statement: Statement, environment: Environment): RuntimeValue {
    try {
      return super.evaluate(statement, environment);
    } finally {
      this.#depth -= 1;
    }
  }
}

/** Renders `program` with `variables`; throws TemplateError for whatever goes wrong in it. */
export function runTemplate(
  program: TemplateProgram,
  variables: Readonly<Record<string, unknown>>,
  maxSteps = maxTemplateSteps,
): string {
  const environment = new Environment();
  const interpreter = new BoundedInterpreter(environment, maxSteps);
  try {
    for (const [name, value] of Object.entries(variables)) environment.set(name, value);
    declareGlobals(environment, interpreter);
    return interpreter.run(program).value as string;
  } catch (error) {
    if (error instanceof TemplateError) throw error;
    throw new TemplateError(
      error instanceof RangeError ? "the chat template nests too deeply" : messageOf(error),
    );
  }
}

function declareGlobals(environment: Environment, interpreter: BoundedInterpreter): void {
  for (const [names, value] of [
    [["true", "True"], true],
    [["false", "False"], false],
    [["none", "None"], null],
  ] as const) {
    for (const name of names) environment.set(name, value);
  }
  environment.set("raise_exception", (message: string) => {
    throw new TemplateError(String(message));
  });
  environment.set("range", (start: number, stop?: number, step?: number) => {
    const numbers = rangeOf(start, stop, step, (count) => interpreter.takeSteps(count));
    return numbers;
  });
  environment.set("strftime_now", (format: string) => formatTime(new Date(), String(format)));
}

/** Python's range(); `charge` is told the length before anything is allocated. */
function rangeOf(
  start: number,
  stop: number | undefined,
  step: number | undefined,
  charge: (count: number) => void,
): number[] {
  const begin = stop === undefined ? 0 : start;
  const end = stop ?? start;
  const stride = step ?? 1;
  if (stride === 0) throw new TemplateError("range() step must not be zero");
  const count = Math.max(0, Math.ceil((end - begin) / stride));
  charge(count);
  return Array.from({ length: count }, (_, index) => begin + index * stride);
}

/** The part of strftime that chat templates use. */
export function formatTime(time: Date, format: string): string {
  const pad = (value: number) => String(value).padStart(2, "0");
  const name = (options: Intl.DateTimeFormatOptions) =>
    new Intl.DateTimeFormat("en-US", options).format(time);
  return format.replace(/%([A-Za-z%])/g, (whole, letter: string) => {
    switch (letter) {
      case "Y":
        return String(time.getFullYear());
      case "y":
        return pad(time.getFullYear() % 100);
      case "m":
        return pad(time.getMonth() + 1);
      case "d":
        return pad(time.getDate());
      case "H":
        return pad(time.getHours());
      case "M":
        return pad(time.getMinutes());
      case "S":
        return pad(time.getSeconds());
      case "b":
        return name({ month: "short" });
      case "B":
        return name({ month: "long" });
      case "a":
        return name({ weekday: "short" });
      case "A":
        return name({ weekday: "long" });
      case "%":
        return "%";
      default:
        return whole;
    }
  });
}
