/**
 * Capture and replay: a graph reads what changes from device buffers, and refuses what may not happen
 * while it is recorded.
 */

import { ptr } from "bun:ffi";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type Device, dtypes } from "../../ffi/device";
import { NativeError } from "../../ffi/errors";
import { Buffers } from "../kernels/support/buffers";
import { Random } from "../kernels/support/random";
import { attentionOperands, prepareAttention, runAttention } from "./support/attention-shape";
import { hasCard, openCuda } from "./support/devices";

const shape = {
  numQHeads: 8,
  numKvHeads: 2,
  headDim: 128,
  vHeadDim: 128,
  pageSize: 16,
  seqLens: [100, 2000, 0, 33],
  queries: 1,
  maxSeqLen: 4096,
};

function statusOf(action: () => unknown): string | undefined {
  try {
    action();
    return undefined;
  } catch (error) {
    return error instanceof NativeError ? error.status : String(error);
  }
}

describe.skipIf(!hasCard())("graphs on the card", () => {
  let cuda: Device;
  beforeAll(() => {
    cuda = openCuda();
  });
  afterAll(() => cuda.close());

  test("replay reads lengths, tables and queries that changed after the capture", () => {
    const operands = attentionOperands(shape, 1);
    const prepared = prepareAttention(cuda, shape, operands, "bfloat16", "bfloat16");
    const graph = cuda.capture(() => prepared.launch());
    const seqLens = Int32Array.from([1, 1999, 0, 20]);
    const q = new Random(2).normals(operands.q.length);
    const changed = { ...operands, seqLens, q, pageTable: operands.pageTable.slice() };
    changed.pageTable[(operands.tableRows[1] as number) * operands.tableWidth + 3] = 0;
    const eager = runAttention(cuda, shape, changed, "bfloat16", "bfloat16");
    const buffers = new Buffers(cuda);
    const staged = buffers.putFloats(q, "bfloat16");
    cuda.upload(prepared.addresses.seqLens, seqLens);
    cuda.upload(prepared.addresses.pageTable, changed.pageTable);
    cuda.copy(prepared.addresses.q, staged, q.length * 2, "deviceToDevice");
    cuda.launchGraph(graph);
    expect(prepared.output()).toEqual(eager);
    cuda.destroyGraph(graph);
    buffers.release();
    prepared.release();
  });

  test("a capture refuses to allocate, synchronise, query and copy from pageable memory", () => {
    const buffers = new Buffers(cuda);
    const address = buffers.allocate(64);
    const host = new Int32Array(16);
    const event = cuda.createEvent();
    const answers: (string | undefined)[] = [];
    const graph = cuda.capture(() => {
      answers.push(statusOf(() => cuda.synchronize()));
      answers.push(statusOf(() => cuda.isEventDone(event)));
      answers.push(statusOf(() => cuda.copy(address, ptr(host), 64, "hostToDevice")));
      answers.push(statusOf(() => cuda.free(address)));
      answers.push(statusOf(() => cuda.info()));
    });
    expect(answers).toEqual(["capture", "device", "capture", "capture", "capture"]);
    cuda.destroyGraph(graph);
    cuda.destroyEvent(event);
    buffers.release();
    cuda.synchronize();
  });

  test("an upload from pageable memory may be overwritten on return, rings full of them included", () => {
    const buffers = new Buffers(cuda);
    const words = 70_001;
    const copies = 100;
    const target = buffers.allocate(words * copies * 4);
    const host = new Int32Array(words);
    for (let i = 0; i < copies; i++) {
      host.fill(i + 1);
      cuda.upload(target + i * words * 4, host);
    }
    host.fill(-1);
    const back = buffers.int32s(target, words * copies);
    expect(back.every((value, at) => value === Math.floor(at / words) + 1)).toBe(true);
    buffers.release();
  });

  test("a product is refused in a capture until its shape has run once, and replays to the same bits", () => {
    const buffers = new Buffers(cuda);
    const random = new Random(3);
    const rows = 100; // fewer may be our own kernel's, which needs no preparation
    const columns = 256;
    const out = buffers.allocate(rows * columns * 2);
    const op = cuda.op("linear", {
      x: buffers.putFloats(random.normals(rows * columns), "bfloat16"),
      weight: buffers.putWeight(random.normals(columns * columns), columns, columns, "bfloat16"),
      out,
      xStride: columns,
      outStride: columns,
      rows,
      inColumns: columns,
      outColumns: columns,
      dtype: dtypes.bfloat16,
      weightDtype: dtypes.bfloat16,
      outDtype: dtypes.bfloat16,
    });
    let refused: string | undefined;
    cuda.destroyGraph(
      cuda.capture(() => {
        refused = statusOf(() => op.launch());
      }),
    );
    if (cuda.info().cublasLtVersion > 0) expect(refused).toBe("capture");
    op.launch();
    const eager = buffers.floats(out, rows * columns, "bfloat16");
    const graph = cuda.capture(() => op.launch());
    cuda.upload(out, new Uint16Array(rows * columns));
    cuda.launchGraph(graph);
    expect(buffers.floats(out, rows * columns, "bfloat16")).toEqual(eager);
    cuda.destroyGraph(graph);
    buffers.release();
  });
});

describe.skipIf(!hasCard())("debug checks on the card", () => {
  test("an id outside its range stops every later call until the library is shut down", () => {
    const cuda = openCuda({ debugChecks: true });
    const buffers = new Buffers(cuda);
    const op = cuda.op("embedding", {
      table: buffers.put(new Float32Array(4 * 8)),
      ids: buffers.put(Int32Array.of(1, 4)),
      out: buffers.allocate(2 * 8 * 4),
      rows: 2,
      columns: 8,
      vocab: 4,
      scale: 1,
    });
    op.launch();
    expect(statusOf(() => cuda.synchronize())).toBe("device");
    expect(statusOf(() => op.launch())).toBe("device");
    cuda.close();
    const again = openCuda();
    again.synchronize();
    again.close();
  });
});
