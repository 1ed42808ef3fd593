/** The sampling parameters of slots as tests write them, and their bytes. */
import { layoutOf, writeField } from "../../../ffi/argument-block";
import { samplingParamsBlock } from "../../../ffi/blocks";

export type SamplingParams = { readonly [K in keyof typeof samplingParamsBlock]?: number };

const { offsets, bytes } = layoutOf(samplingParamsBlock);

/** What a slot samples by when a test says nothing: the whole distribution as it is. */
export const plainSampling: SamplingParams = {
  temperature: 1,
  topP: 1,
  minP: 0,
  topK: 0,
  repetitionPenalty: 1,
};

export function packSamplingParams(slots: readonly SamplingParams[]): Uint8Array {
  const memory = new Uint8Array(slots.length * bytes);
  const view = new DataView(memory.buffer);
  slots.forEach((slot, s) => {
    for (const [name, value] of Object.entries({ ...plainSampling, ...slot })) {
      const type = samplingParamsBlock[name as keyof typeof samplingParamsBlock];
      writeField(view, s * bytes + (offsets[name] as number), type, value as number);
    }
  });
  return memory;
}
