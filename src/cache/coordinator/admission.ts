/**
 * The question that `CacheCoordinator.admit` is asked and
 * what it answers beside yes or no. Reused from call to call.
 */
import type { BlockTable } from "../core/block-table";
import { Int32List } from "../core/int32-list";
import type { LoadBackOp } from "../tier/transfer-types";
import type { GroupDemand } from "./group-demand";
import type { PrefixProbe, ProbeSource } from "./prefix-probe";
import type { RequestProgress } from "./request-progress";

/**
 * admitted: everything was done. short: the device has no room; nothing changed. hostShort: Host had no room
 * for what storage holds; nothing changed but the probe, which now ends at a boundary that can be had.
 */
export type AdmitOutcome = "admitted" | "short" | "hostShort";

export interface AdmissionRequest {
  readonly tables: readonly BlockTable[];
  readonly demands: readonly GroupDemand[];
  readonly progress: RequestProgress;
  /** 0 on a first admission: a new epoch is issued. */
  readonly epoch: number;
  /** The hit of a first admission. */
  readonly probe: PrefixProbe | undefined;
  readonly source: ProbeSource;
}

export class AdmissionResult {
  epoch = 0;
  /** Where a chunk must end so that open groups can be cached too; 0 = nowhere. */
  promotionBoundary = 0;
  deviceTokens = 0;
  hostTokens = 0;
  /** Of hostTokens, the prefix pages of which some block came from storage, in tokens. */
  storageTokens = 0;
  loadBack: LoadBackOp | undefined;
  /** By group: ids that were taken plainly and hold garbage. */
  readonly fresh: readonly Int32List[];

  constructor(numGroups: number) {
    this.fresh = Array.from({ length: numGroups }, () => new Int32List());
  }

  clear(): void {
    this.epoch = 0;
    this.promotionBoundary = 0;
    this.deviceTokens = 0;
    this.hostTokens = 0;
    this.storageTokens = 0;
    this.loadBack = undefined;
    for (const list of this.fresh) list.clear();
  }
}
