/**
 * Where the output matrix comes from: what the configuration says,
 * what the files hold, and what is done about a contradiction.
 */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import type { JsonObject } from "../../src/models/config-reader";
import { createModel } from "../../src/models/registry";
import { openCheckpoint } from "../../src/weights/checkpoint";
import { openSynthetic } from "../../src/weights/synthetic";
import { smallConfig } from "../support/decoder-config";
import { decoderTensors } from "../support/decoder-tensors";
import { expectError } from "../support/expect-error";
import { runAlone } from "../support/hand-driven-sequence";
import { bfloat16Tensor, type FileTensor, writeSafetensors } from "../support/safetensors-file";
import { syntheticValues } from "../support/synthetic-values";
import { removeTemporaryDirectories, temporaryDirectory } from "../support/temporary-directory";
import { ToyModel } from "../support/toy-model";

removeTemporaryDirectories();

const embedding = "model.embed_tokens.weight";
const output = "lm_head.weight";

type Head = "equal" | "different" | "absent";

/** A checkpoint whose output matrix is a copy of the embedding, another matrix, or not there. */
function checkpointWith(head: Head): string {
  const directory = temporaryDirectory();
  const shapes = decoderTensors({ ...smallConfig, tie_word_embeddings: head === "absent" });
  const tensors = Object.fromEntries(
    Object.entries(shapes).map(([name, shape]): [string, FileTensor] => {
      const source = name === output && head === "equal" ? embedding : name;
      const recipe = { shape, scale: shape.length > 1 ? 0.15 : 0.1, offset: shape.length > 1 ? 0 : 1 };
      return [name, bfloat16Tensor(shape, [...syntheticValues(1, source, recipe)])];
    }),
  );
  writeSafetensors(join(directory, "model.safetensors"), tensors);
  return directory;
}

/** Loads and answers; the tokens tell which matrix was used. */
function load(changes: JsonObject, head: Head) {
  using source = openCheckpoint(checkpointWith(head));
  const model = createModel({ ...smallConfig, ...changes }, "config.json");
  using toy = new ToyModel(model, source, { prefixGranularity: 16 });
  const { logprobs } = runAlone(toy, Int32Array.from([5, 6, 7, 8]), { numTokens: 2 });
  const answer = Bun.SHA256.hash(Buffer.concat(logprobs.map((row) => new Uint8Array(row.buffer))), "hex");
  return { answer, remarks: model.remarks, numParameters: model.numParameters };
}

const oneMatrix = 97 * 48;
const tied = load({ tie_word_embeddings: true }, "absent");
const untied = load({ tie_word_embeddings: false }, "different");

describe("said to be tied", () => {
  test("and absent: the embedding is used and counted once", () => {
    expect(tied.remarks).toEqual([]);
    expect(tied.numParameters).toBe(untied.numParameters - oneMatrix);
    expect(tied.answer).not.toBe(untied.answer);
  });

  test("and shipped as a copy: the embedding is used and counted once", () => {
    const loaded = load({ tie_word_embeddings: true }, "equal");
    expect(loaded).toEqual(tied);
  });

  test("and shipped as another matrix: that one is used, with a remark", () => {
    const loaded = load({ tie_word_embeddings: true }, "different");
    expect(loaded.answer).toBe(untied.answer);
    expect(loaded.numParameters).toBe(untied.numParameters);
    expect(loaded.remarks).toHaveLength(1);
    for (const text of ["tie_word_embeddings is true", output, "differs"])
      expect(loaded.remarks[0]).toContain(text);
  });

  test("in a nested section only: loads, by default tied", () => {
    const loaded = load({ text_config: { tie_word_embeddings: true } }, "absent");
    expect(loaded.answer).toBe(tied.answer);
  });
});

describe("said to be untied", () => {
  test("and absent: refused by the tensor's name", () => {
    const message = expectError(
      () => load({ tie_word_embeddings: false }, "absent"),
      "invalid_checkpoint",
      `'${output}' is missing`,
    );
    expect(message).not.toContain("more such faults");
  });

  test("and shipped, equal or not: it is used", () => {
    expect(load({ tie_word_embeddings: false }, "equal").answer).toBe(tied.answer);
    expect(untied.remarks).toEqual([]);
  });
});

describe("not said at all", () => {
  test("and absent: the embedding is used, with a remark", () => {
    const loaded = load({}, "absent");
    expect(loaded.answer).toBe(tied.answer);
    expect(loaded.remarks).toHaveLength(1);
    for (const text of ["tie_word_embeddings is not set", output, "embedding is used"]) {
      expect(loaded.remarks[0]).toContain(text);
    }
  });

  test("and shipped: it is used", () => {
    expect(load({}, "different").answer).toBe(untied.answer);
  });
});

describe("made up", () => {
  test("the output is tied exactly when the configuration says so", () => {
    using source = openSynthetic(temporaryDirectory());
    const parametersWith = (changes: JsonObject) => {
      const model = createModel({ ...smallConfig, ...changes }, "config.json");
      model.checkWeights(source);
      expect(model.remarks).toEqual([]);
      return model.numParameters;
    };
    expect(parametersWith({ tie_word_embeddings: true })).toBe(tied.numParameters);
    expect(parametersWith({ tie_word_embeddings: false })).toBe(untied.numParameters);
    expect(parametersWith({})).toBe(untied.numParameters);
  });
});
