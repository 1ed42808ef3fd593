/** Runs worlds from the command line: `bun test/sim/run.ts [firstSeed] [numSeeds] [stepsPerSeed]`. */
import { World } from "./world";

const [first = 1, count = 50, steps = 500] = process.argv.slice(2).map(Number);
let failed = 0;
let total = 0;
let finished = 0;
for (let seed = first; seed < first + count; seed++) {
  let step = 0;
  let world: World | undefined;
  try {
    world = new World(seed);
    for (; step < steps; step++) world.step();
    world.drain();
    finished += world.finished;
  } catch (error) {
    failed++;
    console.log(`seed ${seed} step ${step}: ${error instanceof Error ? error.message : String(error)}`);
    if (failed === 1) {
      console.log(JSON.stringify(world?.setup.config));
      console.log(error instanceof Error ? error.stack : "");
    }
    if (failed > 12) break;
  }
  total += step;
}
console.log(`${total} steps, ${finished} requests finished, ${failed} worlds failed`);
if (failed > 0) process.exit(1);
