/**
 * Runs worker worlds from the command line: `bun test/sim/run-workers.ts [firstSeed] [numSeeds]
 * [stepsPerSeed]`.
 */
import { WorkerWorld } from "./worker-world";

const [first = 1, count = 50, steps = 400] = process.argv.slice(2).map(Number);
let failed = 0;
let finished = 0;
for (let seed = first; seed < first + count && failed < 10; seed++) {
  try {
    const world = new WorkerWorld(seed);
    for (let step = 0; step < steps; step++) world.step();
    world.drain();
    finished += world.finished;
  } catch (error) {
    failed++;
    console.log(
      `seed ${seed}: ${error instanceof Error ? (failed === 1 ? error.stack : error.message) : error}`,
    );
  }
}
console.log(`${finished} requests finished, ${failed} worlds failed`);
if (failed > 0) process.exit(1);
