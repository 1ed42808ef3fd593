/** Explores small worlds from the command line: `bun test/sim/exhaustive.ts [depth]`. */

import { smallConfigs } from "./small-configs";
import { explore } from "./small-world";

const [depth = 6] = process.argv.slice(2).map(Number);
for (const [name, config] of smallConfigs)
  console.log(`${name}: ${explore(config, depth)} histories up to ${depth} actions`);
