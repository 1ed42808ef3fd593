/**
 * Prints which numbered behaviours have a test: `bun
 * test/scenarios/coverage.ts`. Fails when one has neither test nor reason.
 */
import { Glob } from "bun";

/** Areas of behaviour and their numbers. */
const areas: readonly [name: string, first: number, last: number][] = [
  ["block pool", 1, 13],
  ["ownership of blocks", 14, 23],
  ["prefix hashes", 24, 42],
  ["request slots", 43, 44],
  ["full-history groups", 45, 74],
  ["sliding groups", 75, 95],
  ["joint matching", 96, 96],
  ["matching on Host", 97, 104],
  ["batches of a plan", 105, 111],
  ["groups and block ids", 112, 121],
  ["common boundaries", 122, 139],
  ["clearing", 140, 142],
  ["admission and eviction", 143, 185],
  ["promotion", 186, 192],
  ["Host matching and stores", 193, 205],
  ["state groups", 206, 221],
  ["transfers", 222, 231],
  ["demands, specs and configurations", 232, 260],
  ["life of a request", 261, 265],
  ["building plans", 266, 278],
  ["decode role", 279, 297],
  ["chunks, state, groups, retraction", 298, 339],
  ["reuse on the device", 340, 355],
  ["reuse through Host", 356, 368],
  ["what a driver sees", 369, 393],
  ["capacity model", 394, 406],
  ["chunk arithmetic", 407, 415],
  ["placement order", 416, 424],
  ["stores at the end, secured room", 425, 428],
  ["events and promotion in plans", 429, 432],
  ["tiers and storage", 433, 464],
  ["snapshots and prefill role", 465, 472],
  ["retraction and headroom", 473, 491],
  ["bounded replay", 492, 500],
  ["coordinator", 501, 531],
  ["eviction order", 532, 540],
  ["publication of state", 541, 557],
  ["driver, second part", 558, 566],
];

/** Behaviours that have no meaning here, and why. */
const without: ReadonlyMap<number, string> = new Map([
  [279, "events are plain data in an array, whose order is the language's own"],
  [393, "there is no binding: the scheduler is called directly"],
  [562, "a missing field of an event is a compile error"],
  [563, "a missing configuration is a compile error"],
]);

const covered = new Set<number>();
for await (const path of new Glob("*.test.ts").scan(import.meta.dir)) {
  const text = await Bun.file(`${import.meta.dir}/${path}`).text();
  for (const [, numbers] of text.matchAll(/scenario\(\s*([\d\s,]+?)\s*,?\s*\)\(/g)) {
    for (const number of numbers.split(",")) covered.add(Number(number));
  }
}

let missing = 0;
let total = 0;
for (const [name, first, last] of areas) {
  const numbers = Array.from({ length: last - first + 1 }, (_, i) => first + i);
  const open = numbers.filter((number) => !covered.has(number));
  const unexplained = open.filter((number) => !without.has(number));
  total += numbers.length;
  missing += unexplained.length;
  console.log(`${name}: ${numbers.length - open.length} of ${numbers.length}`);
  for (const number of open) console.log(`  ${number}: ${without.get(number) ?? "no test"}`);
}
console.log(
  `${covered.size} of ${total} behaviours have a test, ${without.size} have a reason, ${missing} neither`,
);
if (missing > 0) process.exit(1);
