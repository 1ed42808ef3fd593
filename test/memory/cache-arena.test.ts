/** The arena: zero-filled, every planned field at its address, clearing what was named and nothing else. */
import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { CacheArena } from "../../src/memory/cache-arena";
import { bind } from "../../src/recipes/bind";
import { pack } from "../../src/recipes/pack";
import { byteField, historyGroup, stateGroup } from "../support/cache-fields";
import { openCpuDevice } from "../support/cpu-device";
import { expectError } from "../support/expect-error";

const device = openCpuDevice();
afterAll(() => device.close());

/**
 * Two groups that share a plane, three small blocks where
 * one large lies, and a padded field on a plane of its own.
 */
const layout = pack(
  [
    historyGroup("small", 16, [byteField("small.k", "plane.a", 32)]),
    stateGroup("large", 16, [
      byteField("large.s", "plane.a", 96),
      byteField("large.c", "plane.b", 40, { exactPageStride: false }),
    ]),
  ],
  { prefixGranularity: 16, alignmentBytes: 32, maxPaddingFraction: 2 },
);
const plan = bind(layout, 4);

const arenas: CacheArena[] = [];
afterEach(() => {
  for (const arena of arenas.splice(0)) arena.close();
});

function newArena(): CacheArena {
  const arena = new CacheArena(device, plan);
  arenas.push(arena);
  return arena;
}

/** All bytes of the arena; the first plane's first field of the null parent marks its begin. */
function bytesOf(arena: CacheArena): Uint8Array {
  const bytes = new Uint8Array(plan.arenaBytes);
  device.download(bytes, baseOf(arena));
  return bytes;
}

function baseOf(arena: CacheArena): number {
  const view = arena.fieldView("large.s");
  return view.base - view.field.arenaOffsetBytes;
}

function fill(arena: CacheArena, value: number): void {
  device.upload(baseOf(arena), new Uint8Array(plan.arenaBytes).fill(value));
}

/** Offsets that hold `value`. */
function offsetsOf(bytes: Uint8Array, value: number): number[] {
  return [...bytes.keys()].filter((offset) => bytes[offset] === value);
}

/** Offsets that blocks of a group occupy. */
function payloadOffsets(arena: CacheArena, groupId: string, blocks: readonly number[]): number[] {
  const views = plan.fields
    .filter((field) => field.groupId === groupId)
    .map(({ fieldId }) => arena.fieldView(fieldId));
  return views
    .flatMap(({ field, pageStrideBytes }) =>
      blocks.flatMap((block) =>
        Array.from(
          { length: field.payloadBytes },
          (_, i) => field.arenaOffsetBytes + block * pageStrideBytes + i,
        ),
      ),
    )
    .sort((a, b) => a - b);
}

const zero = (arena: CacheArena, groupId: string, ids: readonly number[]) =>
  arena.zeroBlocks(groupId, Int32Array.from(ids), ids.length);

describe("the arena", () => {
  test("is zero-filled when it is made", () => {
    expect(offsetsOf(bytesOf(newArena()), 0)).toHaveLength(plan.arenaBytes);
  });

  test("has a view of every planned field, and of no other", () => {
    const arena = newArena();
    for (const field of plan.fields) {
      const view = arena.fieldView(field.fieldId);
      expect(view.field).toBe(field);
      expect(view.pageStrideBytes).toBe(field.pageStrideBytes);
      expect(view.base - baseOf(arena)).toBe(field.arenaOffsetBytes);
    }
    expectError(() => arena.fieldView("layer.9.k"), "unplanned_field", "'layer.9.k'");
  });

  test("starts at an address that suits any kernel", () => {
    expect(baseOf(newArena()) % 256).toBe(0);
  });

  test("gives all its memory back", () => {
    const arena = new CacheArena(device, plan);
    const base = baseOf(arena);
    arena.close();
    expect(() => device.free(base)).toThrow("not allocated");
  });
});

describe("clearing blocks", () => {
  test("touches the payload of the named blocks of the group in every field, and nothing else", () => {
    const cases: readonly (readonly [string, readonly number[]])[] = [
      ["small", [1]],
      ["small", [12, 3, 4]],
      ["large", [4, 1]],
      ["large", [2, 2]],
    ];
    for (const [groupId, ids] of cases) {
      const arena = newArena();
      fill(arena, 7);
      zero(arena, groupId, ids);
      expect(offsetsOf(bytesOf(arena), 0)).toEqual(payloadOffsets(arena, groupId, [...new Set(ids)]));
    }
  });

  test("clears the null block when it is asked for", () => {
    const arena = newArena();
    fill(arena, 7);
    zero(arena, "small", [0]);
    expect(offsetsOf(bytesOf(arena), 0)).toEqual(payloadOffsets(arena, "small", [0]));
  });

  test("reads no more ids than it is told", () => {
    const arena = newArena();
    fill(arena, 7);
    arena.zeroBlocks("small", Int32Array.of(5, 6, -1, 99), 1);
    expect(offsetsOf(bytesOf(arena), 0)).toEqual(payloadOffsets(arena, "small", [5]));
    arena.zeroBlocks("unheard of", Int32Array.of(), 0);
  });

  test("refuses a foreign block or group and leaves all as it was", () => {
    const arena = newArena();
    fill(arena, 7);
    expectError(() => zero(arena, "small", [1, 13]), "invalid_block", "block 13 of 'small'", "0..12");
    expectError(() => zero(arena, "large", [-1]), "invalid_block", "block -1 of 'large'");
    expectError(() => arena.zeroBlocks("large", Int32Array.of(1), 2), "invalid_block");
    expectError(() => zero(arena, "medium", [1]), "unknown_group", "'medium'");
    expect(offsetsOf(bytesOf(arena), 7)).toHaveLength(plan.arenaBytes);
  });

  test("stops rather than write more ids than there is room for", () => {
    const ids = new Int32Array(plan.groups.reduce((sum, { pageCount }) => sum + pageCount, 0)).fill(1);
    expect(() => newArena().zeroBlocks("small", ids, ids.length)).toThrow("to be cleared at once");
  });
});
