/** Identities of prefix pages and of cache events, against published vectors. */
import { describe, expect, test } from "bun:test";
import { Int32BufferPool } from "../../src/cache/core/int32-buffer-pool";
import { namespaceRoot } from "../../src/cache/prefix/namespace-root";
import { PrefixChain } from "../../src/cache/prefix/prefix-chain";
import { digestToHex, hexToDigest, PrefixHasher } from "../../src/cache/prefix/prefix-hasher";
import { eventHash } from "../../src/scheduler/fnv";
import { RequestTokens } from "../../src/scheduler/request-tokens";
import { hashPage } from "../twin/naive-hasher";
import { scenario } from "./scenario";

const source = (tokens: readonly number[]) => new RequestTokens(Int32Array.from(tokens));

/** Hex of one page hashed by the product. */
function pageHash(tokens: readonly number[], prior?: Int32Array): string {
  const target = new Int32Array(8);
  new PrefixHasher(tokens.length).hashPage(source(tokens), 0, prior, 0, target, 0);
  return digestToHex(target, 0);
}

function chainOf(tokens: readonly number[], granularity: number, root?: Uint8Array): string[] {
  const chain = new PrefixChain(root);
  const pages = Math.floor(tokens.length / granularity);
  chain.extend(pages, source(tokens), new PrefixHasher(granularity), new Int32BufferPool());
  return Array.from({ length: pages }, (_, page) => digestToHex(chain.words, page * 8));
}

describe("digests as text", () => {
  scenario(
    24,
    25,
    26,
    28,
  )("are 64 lowercase digits and read back, capitals too", () => {
    const bytes = Uint8Array.from({ length: 32 }, (_, i) => [0x00, 0x0f, 0xa3, 0xff, 0x7e, 0x80][i % 6]);
    const hex = digestToHex(new Int32Array(bytes.buffer), 0);
    expect(hex).toMatch(/^[0-9a-f]{64}$/);
    expect(hex.startsWith("000fa3ff7e80")).toBe(true);
    expect(new Uint8Array(hexToDigest(hex).buffer)).toEqual(bytes);
    expect(hexToDigest(hex.toUpperCase())).toEqual(hexToDigest(hex));
  });
});

describe("page hashes", () => {
  scenario(27)("of nothing are the hash of an empty frame", () => {
    expect(hashPage([], undefined)).toBe("af5570f5a1810b7af78caf4bc70a660f0df51e42baf91d4de5b2328de0e83dfc");
  });

  scenario(
    29,
    30,
    31,
    32,
  )("depend on the tokens, their order and what stands in front", () => {
    expect(pageHash([7, 8, 9])).toBe(pageHash([7, 8, 9]));
    expect(pageHash([1, 2, 3])).not.toBe(pageHash([1, 2, 4]));
    expect(pageHash([1, 2])).not.toBe(pageHash([2, 1]));
    expect(pageHash([5, 6])).not.toBe(pageHash([5, 6], hexToDigest(pageHash([1, 2]))));
  });

  scenario(
    33,
    34,
    35,
    36,
  )("frame what keys a namespace adds, so that no two settings look alike", () => {
    expect(hashPage([1, 2, 3], undefined, [])).toBe(hashPage([1, 2, 3], undefined));
    expect(hashPage([1, 2, 3], undefined, ["lora-A"])).toBe(
      "56a68937012fd86844c5644e90501fc46a2c7af17ccb71c803a3c072421e84d7",
    );
    const roots = [
      { salt: "ab", tenant: "c" },
      { salt: "a", tenant: "bc" },
      { salt: "abc" },
      { tenant: "abc" },
    ];
    const digests = roots.map((namespace) => chainOf([1, 2], 2, namespaceRoot(namespace))[0]);
    expect(new Set([...digests, chainOf([1, 2], 2)[0]]).size).toBe(5);
    expect(namespaceRoot({})).toBeUndefined();
    expect(namespaceRoot({ adapter: "north" })).not.toEqual(namespaceRoot({ salt: "north" }));
  });

  scenario(37, 38)("do not take tokens for a chained digest or for a key", () => {
    const digest = "00112233445566778899aabbccddeeff".repeat(2);
    const words = Array.from(hexToDigest(digest));
    expect(hashPage(words, undefined)).not.toBe(hashPage([], digest));
    expect(hashPage([9, 8], undefined, ["wxyz"])).not.toBe(hashPage([9, 8, 1, 4, 0x7a797877], undefined));
  });

  scenario(
    39,
    40,
    42,
  )("chain: each page takes the digest of the one before, however far one goes at a time", () => {
    const tokens = [1, 2, 3, 4, 5, 6];
    const chain = chainOf(tokens, 2);
    let prior: string | undefined;
    for (const [page, hash] of chain.entries()) {
      expect(hash).toBe(hashPage(tokens.slice(page * 2, page * 2 + 2), prior));
      prior = hash;
    }
    const [same, other] = [chainOf([9, 9, 9, 9], 2), chainOf([1, 1, 9, 9], 2)];
    expect([same[0] === other[0], same[1] === other[1]]).toEqual([false, false]);
  });

  scenario(41)("come out equal when a chain is extended page by page", () => {
    const tokens = Array.from({ length: 12 }, (_, i) => 100 + i);
    const chain = new PrefixChain();
    const [hasher, buffers] = [new PrefixHasher(2), new Int32BufferPool()];
    for (const pages of [3, 4, 6]) chain.extend(pages, source(tokens), hasher, buffers);
    const stepwise = Array.from({ length: 6 }, (_, page) => digestToHex(chain.words, page * 8));
    expect(stepwise).toEqual(chainOf(tokens, 2));
  });

  test("equal the published vectors", () => {
    const first = "956c0e14a21bc447ef3828556bf527a079774c340e0bcd79d625ac36d2d8ec0e";
    expect(chainOf([1, 2, 3, 4], 2)).toEqual([
      first,
      "c85302c76b67619ca670ce1e78e2092d589dad96e10abec1fb3e5fb5e360ce02",
    ]);
    expect(pageHash([-1])).toBe("de25d19943926b201c1693709bc5eca70ecf04229c1668e2f276249f9bebe043");
    expect(hashPage([1, 2], undefined)).toBe(first);
  });

  test("of a prompt and its generated tokens do not show where one ends", () => {
    const tokens = new RequestTokens(Int32Array.of(1, 2, 3));
    const buffers = new Int32BufferPool();
    for (const token of [4, 5, 6]) tokens.append(token, buffers);
    const chain = new PrefixChain();
    chain.extend(3, tokens, new PrefixHasher(2), buffers);
    expect(digestToHex(chain.words, 16)).toBe(chainOf([1, 2, 3, 4, 5, 6], 2)[2]);
  });
});

describe("event hashes", () => {
  test("equal the published vectors", () => {
    expect(eventHash(undefined, [1, 2])).toBe(15057981579580773918n);
    expect(eventHash(15057981579580773918n, [3, 4])).toBe(1701542150546744594n);
    expect(eventHash(undefined, [])).toBe(16574515714863409599n);
  });
});
