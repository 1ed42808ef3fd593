/** The shape of an attention case and its operands, as the case and its plain reference both see them. */
import type { Dtype } from "../../../ffi/device";
import type { Matrix } from "./operands";

export interface AttentionShape {
  /** Of each sequence: tokens already in the cache, and queries behind them. */
  readonly sequences: readonly (readonly [number, number])[];
  readonly numQHeads: number;
  readonly numKvHeads: number;
  readonly headDim: number;
  readonly vHeadDim?: number;
  readonly pageSize: number;
  readonly kvDtype: Dtype;
  readonly window?: number;
  readonly softcap?: number;
  readonly sinks?: boolean;
  readonly holes?: boolean;
  /** Where a cached row at either end of every sequence holds no numbers. */
  readonly poison?: "keys" | "values";
}

export interface AttentionOperands {
  readonly q: Matrix;
  readonly k: Float32Array;
  readonly v: Float32Array;
  readonly sinks: Float32Array;
  /** [sequences, tableWidth]; 0 = hole. */
  readonly pages: Int32Array;
  readonly tableWidth: number;
  readonly kPageElements: number;
  readonly vPageElements: number;
}

export const numRows = (shape: AttentionShape): number => shape.sequences.reduce((sum, [, n]) => sum + n, 0);
export const attentionScale = (shape: AttentionShape): number => Math.fround(1.3 / Math.sqrt(shape.headDim));
