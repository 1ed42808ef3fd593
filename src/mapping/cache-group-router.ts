/**
 * The one point where logical tables become kernel operands: a layer asks by its number and its mask, and
 * gets the addresses of its rows, of its group's page table and of the step's write locations.
 */
import type { Address, Device } from "../../ffi/device";
import { assert, demand, GranaryError } from "../assert";
import { maxBlockTableEntries } from "../limits";
import type { CacheArena } from "../memory/cache-arena";
import type { CacheLayout, FieldLayout } from "../recipes/pack";
import type { CacheGroupConfig } from "../scheduler/config";
import type { ExecutionPlan } from "../scheduler/plan";
import { kernelPageSizeFor } from "./kernel-page-sizes";
import { PageTableUpdates } from "./page-table-updates";
import { SlotTables } from "./slot-tables";
import { writeLocations } from "./write-locations";

/** What a layer sees when it computes: everything before a position, or a window that ends there. */
export interface AttentionMask {
  /** Keys before the query that stay visible; -1 = all. */
  readonly windowLeft: number;
}

/**
 * Operands of one layer's paged attention but for its rows,
 * whose addresses are known once the arena is sized.
 */
export interface LayerCacheView {
  readonly kPageStrideBytes: number;
  readonly vPageStrideBytes: number;
  readonly pageSize: number;
  readonly pageTable: Address;
  readonly pageTableWidth: number;
  /** int32, one a row of the step. */
  readonly locations: Address;
  readonly mask: AttentionMask;
}

interface RoutedGroup {
  readonly config: CacheGroupConfig;
  readonly pageSize: number;
  readonly tables: SlotTables;
  readonly updates: PageTableUpdates;
  readonly locations: Address;
  readonly locationsHost: Int32Array;
}

export interface RouterOptions {
  readonly groups: readonly CacheGroupConfig[];
  readonly maxBatchSize: number;
  /** Rows of the largest step. */
  readonly maxRows: number;
  /** Tokens of the longest request, overlap and verify width included. */
  readonly maxTokensPerRequest: number;
  readonly kernelPageSize?: number | undefined;
}

export class CacheGroupRouter {
  readonly #device: Device;
  readonly #layout: CacheLayout;
  readonly #groups: readonly RoutedGroup[];
  #arena: CacheArena | undefined;

  constructor(device: Device, layout: CacheLayout, options: RouterOptions) {
    this.#device = device;
    this.#layout = layout;
    this.#groups = options.groups.map((config) => this.#routeGroup(config, options));
  }

  #routeGroup(config: CacheGroupConfig, options: RouterOptions): RoutedGroup {
    const { groupId, blockGranularity } = config;
    const override = options.kernelPageSize;
    const pageSize = kernelPageSizeFor({ groupId, blockGranularity, device: this.#device.kind, override });
    const pagesPerBlock = blockGranularity / pageSize;
    // The largest run is dense; a plan may reserve up to one block beyond what it computes.
    const maxBlocks = Math.ceil(options.maxTokensPerRequest / blockGranularity) + 2;
    demand(
      options.maxBatchSize * maxBlocks <= maxBlockTableEntries,
      "invalid_option",
      `block tables for ${options.maxBatchSize} requests of ${options.maxTokensPerRequest} tokens ` +
        "are too large: lower --max-model-len or --max-num-seqs",
    );
    const tables = new SlotTables({ maxBatchSize: options.maxBatchSize, maxBlocks, pagesPerBlock });
    const updates = new PageTableUpdates(this.#device, {
      groupId,
      numEntries: (options.maxBatchSize + 1) * tables.pageTableWidth,
    });
    const locations = this.#device.allocate(options.maxRows * 4, `write locations of '${groupId}'`);
    const locationsHost = new Int32Array(options.maxRows);
    return { config, pageSize, tables, updates, locations, locationsHost };
  }

  /** Names the arena whose blocks the tables speak of; before the first plan. */
  attachArena(arena: CacheArena): void {
    this.#arena = arena;
  }

  #field(fieldId: string): FieldLayout {
    const field = this.#layout.fields.find((candidate) => candidate.fieldId === fieldId);
    if (field === undefined)
      throw new GranaryError("unplanned_field", `the cache plan has no field '${fieldId}'`);
    return field;
  }

  /** Finds the group that holds a layer's rows and checks that it keeps all the layer's mask can see. */
  layerView(layer: number, mask: AttentionMask): LayerCacheView {
    const k = this.#field(`layer.${layer}.k`);
    const v = this.#field(`layer.${layer}.v`);
    const group = this.#groups.find(({ config }) => config.groupId === k.groupId);
    if (group === undefined) throw new GranaryError("unknown_group", `layer ${layer} is in no cache group`);
    const window = group.config.slidingWindowTokens;
    if (window !== undefined && (mask.windowLeft < 0 || mask.windowLeft + 1 > window)) {
      throw new GranaryError(
        "invalid_mask",
        `layer ${layer} can see further back than the ${window} tokens that '${group.config.groupId}' keeps`,
      );
    }
    const pagesPerBlock = group.config.blockGranularity / group.pageSize;
    return {
      kPageStrideBytes: k.pageStrideBytes / pagesPerBlock,
      vPageStrideBytes: v.pageStrideBytes / pagesPerBlock,
      pageSize: group.pageSize,
      pageTable: group.updates.pageTable,
      pageTableWidth: group.tables.pageTableWidth,
      locations: group.locations,
      mask,
    };
  }

  /**
   * Clears fresh blocks, brings every group's tables to the plan's
   * state and enqueues this step's write locations; rows up to
   * `padded` write nowhere.
   */
  applyPlan(plan: ExecutionPlan, padded = 0): void {
    const { forward } = plan;
    const arena = this.#arena;
    assert(arena !== undefined, "a plan came before the arena");
    this.#groups.forEach((group, index) => {
      const fresh = plan.blocksToZero[index];
      if (fresh !== undefined) arena.zeroBlocks(group.config.groupId, fresh.ids, fresh.length);
      const changes = forward.tableChanges[index];
      if (changes !== undefined) group.tables.apply(forward, changes, group.updates);
      group.updates.flush();
      this.#uploadLocations(group, plan, padded);
    });
  }

  #uploadLocations(group: RoutedGroup, plan: ExecutionPlan, padded: number): void {
    let offset = 0;
    for (const row of plan.forward.rows) {
      const first = row.begin - row.replay;
      // Re-fed rows rebuild replayable groups only; everywhere else their values stand already.
      const skipped = group.config.replayable ? 0 : row.replay;
      group.locationsHost.fill(-1, offset, offset + skipped);
      writeLocations(
        group.tables,
        group.config.blockGranularity,
        row.slot,
        first + skipped,
        row.inputLength - skipped,
        group.locationsHost,
        offset + skipped,
      );
      offset += row.inputLength;
    }
    const end = Math.max(offset, padded);
    group.locationsHost.fill(-1, offset, end);
    this.#device.upload(group.locations, group.locationsHost.subarray(0, end));
  }
}
