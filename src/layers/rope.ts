/**
 * Rotary positions (Su et al., arXiv 2104.09864): inverse frequencies of the scaling schemes that
 * configurations name, and the op that turns a step's positions into cosines and sines once for all layers.
 */
import type { Op } from "../../ffi/device";
import type { BuildContext } from "./build-context";
import type { Tensor } from "./tensor";

export interface RopeBase {
  readonly theta: number;
  /** Dimensions of a head that rotate; even. */
  readonly rotaryDim: number;
}

export type RopeScaling =
  | { readonly type: "default" }
  | { readonly type: "linear"; readonly factor: number }
  | {
      readonly type: "llama3";
      readonly factor: number;
      readonly lowFreqFactor: number;
      readonly highFreqFactor: number;
      readonly originalMaxPositions: number;
    }
  | {
      readonly type: "yarn";
      readonly factor: number;
      readonly betaFast: number;
      readonly betaSlow: number;
      readonly originalMaxPositions: number;
      /** Rounds the correction range to whole dimensions. */
      readonly truncate: boolean;
      /** Multiplies cosines and sines. */
      readonly attentionFactor: number;
    };

export interface RopeConfig extends RopeBase {
  readonly scaling: RopeScaling;
}

/**
 * Attention factor of YaRN when the configuration names none (Peng et al., arXiv 2309.00071, section 3.4).
 */
export function yarnAttentionFactor(factor: number, mscale?: number, mscaleAllDim?: number): number {
  const scaleOf = (multiplier: number) => (factor <= 1 ? 1 : 0.1 * multiplier * Math.log(factor) + 1);
  return mscale && mscaleAllDim ? scaleOf(mscale) / scaleOf(mscaleAllDim) : scaleOf(1);
}

/** Keeps short wavelengths, divides long ones, blends between (Llama 3.1's published rule). */
function llama3Frequency(frequency: number, scaling: Extract<RopeScaling, { type: "llama3" }>): number {
  const wavelength = (2 * Math.PI) / frequency;
  const { factor, lowFreqFactor, highFreqFactor, originalMaxPositions } = scaling;
  if (wavelength < originalMaxPositions / highFreqFactor) return frequency;
  if (wavelength > originalMaxPositions / lowFreqFactor) return frequency / factor;
  const blend = (originalMaxPositions / wavelength - lowFreqFactor) / (highFreqFactor - lowFreqFactor);
  return ((1 - blend) * frequency) / factor + blend * frequency;
}

/**
 * Share of interpolation of each pair: 0 where the pair turns
 * often inside the original context, 1 where hardly at all.
 */
function yarnRamp(base: RopeBase, scaling: Extract<RopeScaling, { type: "yarn" }>, pair: number): number {
  const dimensionOf = (rotations: number) =>
    (base.rotaryDim * Math.log(scaling.originalMaxPositions / (rotations * 2 * Math.PI))) /
    (2 * Math.log(base.theta));
  let low = dimensionOf(scaling.betaFast);
  let high = dimensionOf(scaling.betaSlow);
  if (scaling.truncate) [low, high] = [Math.floor(low), Math.ceil(high)];
  low = Math.max(low, 0);
  high = Math.min(high, base.rotaryDim - 1);
  if (low === high) high += 0.001;
  return Math.min(1, Math.max(0, (pair - low) / (high - low)));
}

/** One inverse frequency a pair, rounded to float32 as the models were trained with. */
export function inverseFrequencies({ theta, rotaryDim, scaling }: RopeConfig): Float64Array {
  return Float64Array.from({ length: rotaryDim / 2 }, (_, pair) => {
    const frequency = 1 / theta ** ((2 * pair) / rotaryDim);
    if (scaling.type === "linear") return Math.fround(frequency / scaling.factor);
    if (scaling.type === "llama3") return Math.fround(llama3Frequency(frequency, scaling));
    if (scaling.type === "yarn") {
      const ramp = yarnRamp({ theta, rotaryDim }, scaling, pair);
      return Math.fround((frequency / scaling.factor) * ramp + frequency * (1 - ramp));
    }
    return Math.fround(frequency);
  });
}

export class RopeTable {
  /** float32 [rows, pairs, 2]. */
  readonly cosSin: Tensor;
  readonly pairs: number;
  readonly #op: Op<"ropeTable">;

  constructor(context: BuildContext, config: RopeConfig) {
    const { device, buffers, operands } = context;
    const frequencies = inverseFrequencies(config);
    this.pairs = frequencies.length;
    const address = device.allocate(frequencies.byteLength, "rope frequencies");
    device.upload(address, frequencies);
    this.cosSin = buffers.tensor(`cosSin.${address}`, 2 * this.pairs, { dtype: "float32" });
    this.#op = device.op("ropeTable", {
      positions: operands.positions,
      inverseFrequencies: address,
      out: this.cosSin.address,
      pairs: this.pairs,
      scale: config.scaling.type === "yarn" ? config.scaling.attentionFactor : 1,
    });
  }

  run(rows: number): void {
    this.#op.set("rows", rows).launch();
  }
}
