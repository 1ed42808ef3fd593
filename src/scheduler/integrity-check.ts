/**
 * Recounts who owns every block from the holders' side and compares with the books: a leak or a double
 * release shows up as a difference. Walks in slices, because an idle engine must stay ready for work.
 */
import { assert } from "../assert";
import type { CacheGroup } from "../cache/cache-group";
import type { CacheCoordinator } from "../cache/coordinator/cache-coordinator";
import type { IntegrityCheck } from "./gauges";
import type { RequestBook } from "./request-book";

export class CacheIntegrityCheck implements IntegrityCheck {
  readonly #coordinator: CacheCoordinator;
  readonly #book: RequestBook;
  readonly #activity: () => number;
  #walk: Generator<undefined, void, undefined>;
  #startedAt: number;

  constructor(coordinator: CacheCoordinator, book: RequestBook, activity: () => number) {
    this.#coordinator = coordinator;
    this.#book = book;
    this.#activity = activity;
    this.#startedAt = activity();
    this.#walk = this.#run();
  }

  step(numBlocks: number): boolean {
    if (this.#activity() !== this.#startedAt) {
      this.#startedAt = this.#activity();
      this.#walk = this.#run();
    }
    for (let i = 0; i < numBlocks; i++) if (this.#walk.next().done === true) return true;
    return false;
  }

  *#run(): Generator<undefined, void, undefined> {
    const { groups, device, host, tier } = this.#coordinator;
    let numActive = 0;
    const namedParents = new Set<number>();
    for (const group of groups) {
      const { refs } = group.allocator;
      const expected = new Int32Array(device.pool.numLcmBlocks * group.spec.cacheBlocksPerLcmBlock + 1);
      for (const request of this.#book.all()) {
        const table = request.tables[group.spec.group];
        assert(
          request.holdsBlocks || table.length === 0,
          `request ${request.id} holds blocks in a state without`,
        );
        for (let slot = 0; slot < table.length; slot++) {
          const block = table.at(slot);
          if (block === 0) continue;
          expected[block]++;
          namedParents.add(device.pool.parentOf(group.spec.group, block));
          yield;
        }
      }
      tier?.forEachDevicePin((pinned, block) => {
        if (pinned === group.spec.group) expected[block]++;
      });
      yield* this.#compare(group, "device", expected, (block) => group.index.isCached(block));
      assert(refs.pool === device.pool, "a group places its blocks in another pool");
    }
    numActive = namedParents.size;
    assert(
      numActive === device.census.numActive,
      `${numActive} LCM blocks are active, ${device.census.numActive} counted`,
    );
    if (host === undefined) return;
    for (const group of groups) {
      const expected = new Int32Array(host.pool.numLcmBlocks * group.spec.cacheBlocksPerLcmBlock + 1);
      tier?.forEachHostPin((pinned, block) => {
        if (pinned === group.spec.group) expected[block]++;
      });
      yield* this.#compare(group, "host", expected, (block) => group.hostIndex?.isCached(block) === true);
    }
  }

  /** Owners by the holders' count, the index's own included, against owners and occupancy by the books. */
  *#compare(
    group: CacheGroup,
    tier: "device" | "host",
    expected: Int32Array,
    isCached: (block: number) => boolean,
  ): Generator<undefined, void, undefined> {
    const refs = tier === "device" ? group.allocator.refs : group.hostRefs;
    assert(refs !== undefined, "a Host tier without Host blocks");
    for (let block = 1; block < expected.length; block++) {
      const owners = expected[block] + (isCached(block) ? 1 : 0);
      const place = `${tier} block ${block} of group ${group.spec.group}`;
      assert(
        owners === refs.ownersOf(block),
        `${place} has ${owners} holders and ${refs.ownersOf(block)} owners`,
      );
      const isOccupied = refs.pool.isOccupied(group.spec.group, block);
      assert(
        isOccupied === owners > 0,
        `${place} has ${owners} holders and is ${isOccupied ? "" : "not "}occupied`,
      );
      yield;
    }
  }
}
