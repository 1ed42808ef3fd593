/** Every kernel case. */
import { attentionCases, groupCases } from "./attention";
import { gatedLinearCases } from "./gated-linear";
import type { KernelCase } from "./kernel-case";
import { linearCases } from "./linear";
import { moeCases } from "./moe";
import { qkvCases } from "./qkv";
import { rmsNormCases } from "./rms-norm";
import { rowCases } from "./rows";
import { sampleCases } from "./sample";
import { tableCases } from "./tables";
import { topLogprobsCases } from "./top-logprobs";

export const kernelCases: readonly KernelCase[] = [
  ...rowCases,
  ...rmsNormCases,
  ...linearCases,
  ...gatedLinearCases,
  ...qkvCases,
  ...attentionCases,
  ...groupCases,
  ...moeCases,
  ...topLogprobsCases,
  ...sampleCases,
  ...tableCases,
];
