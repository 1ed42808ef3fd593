/**
 * W1-adm: one admission of a prompt whose whole prefix is
 * cached, with its hashes to compute and with them given.
 */
import { CacheCoordinator } from "../../src/cache/coordinator/cache-coordinator";
import { GroupDemand } from "../../src/cache/coordinator/group-demand";
import { CompletedPages } from "../../src/cache/coordinator/request-progress";
import { BlockTable } from "../../src/cache/core/block-table";
import { Int32List } from "../../src/cache/core/int32-list";
import { boundaryKind } from "../../src/cache/prefix/prefix-cache-index";
import { PrefixChain } from "../../src/cache/prefix/prefix-chain";
import { RequestTokens } from "../../src/scheduler/request-tokens";
import { middle, nowUs } from "./measure";
import { benchConfig, Rig, streamRequest } from "./rig";
import { streamTokens } from "./tokens";

export interface AdmissionRun {
  readonly withHashingUs: number;
  readonly hashesGivenUs: number;
}

export function runAdmission(prefixTokens: number, numBlocks: number, timerUs: number): AdmissionRun {
  const rig = new Rig(benchConfig(numBlocks, { maxScheduledTokens: 131_072 }), timerUs);
  const prompt = streamTokens(1000 + prefixTokens, prefixTokens + 1);
  rig.submit([streamRequest("seed", prompt, 1)]);
  rig.drain();
  rig.scheduler.nextExecutionPlan();
  const samples: number[] = [];
  for (let i = 0; i < 203; i++) {
    const requests = [streamRequest(`hit${i}`, prompt.slice(), 1)];
    const start = nowUs();
    const [handle] = rig.scheduler.submit([requests[0].spec]);
    const plan = rig.scheduler.nextExecutionPlan();
    const us = nowUs() - start - timerUs;
    const [row] = plan.forward.rows;
    if (row.deviceHitTokens !== prefixTokens || row.size !== 1) throw new Error("the admission did not hit");
    rig.abort(handle);
    if (i >= 3) samples.push(us);
  }
  return { withHashingUs: middle(samples), hashesGivenUs: hashesGiven(prompt, numBlocks, timerUs) };
}

/** Probe and admit on the cache alone, the page hashes being known. */
function hashesGiven(prompt: Int32Array, numBlocks: number, timerUs: number): number {
  const coordinator = new CacheCoordinator({
    prefixGranularity: 64,
    specs: [
      {
        group: 0,
        kind: "full",
        blockGranularity: 64,
        windowTokens: 0,
        cacheBlocksPerLcmBlock: 1,
        shardCount: 1,
        replayable: false,
      },
    ],
    numDeviceLcmBlocks: numBlocks,
    numHostLcmBlocks: 0,
    enableL3Storage: false,
    streamsDeviceToHost: false,
    sink: undefined,
  });
  const numPages = Math.floor(prompt.length / 64);
  const source = { chain: new PrefixChain(), tokens: new RequestTokens(prompt) };
  source.chain.extend(numPages, source.tokens, coordinator.hasher, coordinator.buffers);
  const { index } = coordinator.groups[0];
  for (let page = 0; page < numPages; page++) {
    const block = index.refs.acquire();
    index.register(block, source.chain.words, page * 8, 0, boundaryKind.chunk, 1, page);
  }
  for (let page = numPages - 1; page >= 0; page--)
    index.refs.release(index.find(source.chain.words, page * 8, 0));
  const tables = [new BlockTable()];
  const demands = [new GroupDemand()];
  const progress = {
    chain: source.chain,
    completed: new CompletedPages(),
    stateBoundaries: new Int32List(),
    numComputedTokens: -1,
  };
  const samples: number[] = [];
  for (let i = 0; i < 203; i++) {
    const start = nowUs();
    const probe = coordinator.probePrefix(source, numPages);
    demands[0].denseGrowth(1, 1);
    const outcome = coordinator.admit({ tables, demands, progress, epoch: 0, probe, source });
    const us = nowUs() - start - timerUs;
    if (outcome !== "admitted" || probe.deviceTokens !== numPages * 64)
      throw new Error("the probe did not hit");
    coordinator.free(tables);
    if (i >= 3) samples.push(us);
  }
  return middle(samples);
}
