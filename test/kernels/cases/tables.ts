/** Cases of the ops that move ids, counts and blocks: resolve, count, scatter, zero and copy blocks. */
import type { Address } from "../../../ffi/device";
import { Buffers } from "../support/buffers";
import { Random } from "../support/random";
import type { KernelCase, Outputs, PreparedCase } from "./kernel-case";

const exact = { absolute: 0, relative: 0 };
const count = 100;

/** An op on one list, in pieces of the list. */
function listCase(
  name: string,
  prepare: (buffers: Buffers) => Omit<PreparedCase, "release">,
  reference: () => Outputs,
): KernelCase {
  return {
    name,
    rows: count,
    prepare(device) {
      const buffers = new Buffers(device);
      return { ...prepare(buffers), release: () => buffers.release() };
    },
    reference,
    tolerance: () => exact,
  };
}

function resolveTokensCase(): KernelCase {
  const numSlots = 12;
  const random = new Random(1);
  const ids = random.integers(count, -numSlots, 500);
  const lastTokens = random.integers(numSlots, 0, 999);
  return listCase(
    "resolveTokens",
    (buffers) => {
      const address = buffers.put(ids);
      const op = buffers.device.op("resolveTokens", { lastTokens: buffers.put(lastTokens), numSlots });
      return {
        launch: (begin, end) =>
          op
            .set("ids", address + begin * 4)
            .set("rows", end - begin)
            .launch(),
        outputs: () => ({ ids: buffers.int32s(address, count) }),
      };
    },
    () => ({ ids: ids.map((id) => (id < 0 ? (lastTokens[-id - 1] as number) : id)) }),
  );
}

function countTokensCase(): KernelCase {
  const vocab = 31;
  const slot = 2;
  const numPrompt = 40;
  const ids = new Random(2).integers(count, 0, vocab - 1);
  const before = new Uint32Array(4 * vocab).fill(5);
  return listCase(
    "countTokens",
    (buffers) => {
      const counts = buffers.put(before);
      const address = buffers.put(ids);
      const op = buffers.device.op("countTokens", { counts, slot, vocab });
      return {
        launch(begin, end) {
          op.set("ids", address + begin * 4).set("numIds", end - begin);
          op.set("numPrompt", Math.min(Math.max(numPrompt - begin, 0), end - begin));
          op.set("clear", begin === 0 ? 1 : 0).launch();
        },
        outputs: () => ({ counts: buffers.get(counts, new Uint32Array(before.length)) }),
      };
    },
    () => {
      const counts = before.slice();
      for (let id = 0; id < vocab; id++) {
        const inPrompt = ids.subarray(0, numPrompt).includes(id) ? 0x80000000 : 0;
        counts[slot * vocab + id] = inPrompt + ids.subarray(numPrompt).filter((other) => other === id).length;
      }
      return { counts };
    },
  );
}

function scatterCase(): KernelCase {
  const random = new Random(3);
  const table = random.integers(50, -9, 9);
  const indices = random.integers(count, 0, 49); // repeats: the later entry wins
  const values = random.integers(count, 0, 9999);
  return listCase(
    "scatter",
    (buffers) => {
      const address = buffers.put(table);
      const [indicesAddress, valuesAddress] = [buffers.put(indices), buffers.put(values)];
      const op = buffers.device.op("scatter", { table: address });
      return {
        launch(begin, end) {
          op.set("indices", indicesAddress + begin * 4).set("values", valuesAddress + begin * 4);
          op.set("count", end - begin).launch();
        },
        outputs: () => ({ table: buffers.int32s(address, table.length) }),
      };
    },
    () => {
      const expected = table.slice();
      indices.forEach((index, i) => {
        expected[index] = values[i] as number;
      });
      return { table: expected };
    },
  );
}

/** Two fields of different payload and stride, in bytes a multiple of 4 for the sake of the comparison. */
const fieldShapes = [
  { strideBytes: 160, payloadBytes: 128 },
  { strideBytes: 52, payloadBytes: 52 },
] as const;
const numBlocks = 128;

const fieldInts = (f: number) => (numBlocks * (fieldShapes[f]?.strideBytes as number)) / 4;
const contentsOf = (seed: number) =>
  fieldShapes.map((_, f) => new Random(seed + f).integers(fieldInts(f), 1, 1 << 30));

/** The array of field descriptions that the ops read. */
function putFields(buffers: Buffers, bases: readonly Address[]): Address {
  const words = bases.flatMap((base, f) => [
    base,
    fieldShapes[f]?.strideBytes as number,
    fieldShapes[f]?.payloadBytes as number,
  ]);
  return buffers.put(BigInt64Array.from(words, BigInt));
}

const payloadOf = (field: Int32Array, f: number, block: number) => {
  const { strideBytes, payloadBytes } = fieldShapes[f] as (typeof fieldShapes)[number];
  return field.subarray((block * strideBytes) / 4, (block * strideBytes + payloadBytes) / 4);
};

const outputsOf = (buffers: Buffers, bases: readonly Address[]): Outputs =>
  Object.fromEntries(bases.map((base, f) => [`field${f}`, buffers.int32s(base, fieldInts(f))]));

function zeroBlocksCase(): KernelCase {
  // Block 0 is among them: it may be asked for.
  const ids = Int32Array.from({ length: count }, (_, i) => (i === 17 ? 0 : new Random(i).integer(1, 40)));
  return listCase(
    "zeroBlocks",
    (buffers) => {
      const bases = contentsOf(10).map((field) => buffers.put(field));
      const address = buffers.put(ids);
      const op = buffers.device.op("zeroBlocks", { fields: putFields(buffers, bases), numFields: 2 });
      return {
        launch: (begin, end) =>
          op
            .set("ids", address + begin * 4)
            .set("numIds", end - begin)
            .launch(),
        outputs: () => outputsOf(buffers, bases),
      };
    },
    () => {
      const fields = contentsOf(10);
      for (const id of ids) {
        fields.forEach((field, f) => {
          payloadOf(field, f, id).fill(0);
        });
      }
      return { field0: fields[0] as Int32Array, field1: fields[1] as Int32Array };
    },
  );
}

function copyBlocksCase(): KernelCase {
  const random = new Random(30);
  const sourceIds = random.integers(count, 0, numBlocks - 1);
  const destinationIds = random
    .permutation(numBlocks - 1)
    .slice(0, count)
    .map((id) => id + 1);
  return listCase(
    "copyBlocks",
    (buffers) => {
      const sources = contentsOf(20).map((field) => buffers.put(field));
      const destinations = contentsOf(40).map((field) => buffers.put(field));
      const [from, to] = [buffers.put(sourceIds), buffers.put(destinationIds)];
      const op = buffers.device.op("copyBlocks", {
        sources: putFields(buffers, sources),
        destinations: putFields(buffers, destinations),
        numFields: 2,
      });
      return {
        launch(begin, end) {
          op.set("sourceIds", from + begin * 4).set("destinationIds", to + begin * 4);
          op.set("numIds", end - begin).launch();
        },
        outputs: () => outputsOf(buffers, destinations),
      };
    },
    () => {
      const sources = contentsOf(20);
      const fields = contentsOf(40);
      for (let i = 0; i < count; i++) {
        fields.forEach((field, f) => {
          const source = payloadOf(sources[f] as Int32Array, f, sourceIds[i] as number);
          payloadOf(field, f, destinationIds[i] as number).set(source);
        });
      }
      return { field0: fields[0] as Int32Array, field1: fields[1] as Int32Array };
    },
  );
}

export const tableCases: readonly KernelCase[] = [
  resolveTokensCase(),
  countTokensCase(),
  scatterCase(),
  zeroBlocksCase(),
  copyBlocksCase(),
];
