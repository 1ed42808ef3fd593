/** Every kernel case. */
import { attentionCases, groupCases } from "./attention";
import type { KernelCase } from "./kernel-case";
import { linearCases } from "./linear";
import { moeCases } from "./moe";
import { qkvCases } from "./qkv";
import { rmsNormCases } from "./rms-norm";
import { rowCases } from "./rows";

export const kernelCases: readonly KernelCase[] = [
  ...rowCases,
  ...rmsNormCases,
  ...linearCases,
  ...qkvCases,
  ...attentionCases,
  ...groupCases,
  ...moeCases,
];
