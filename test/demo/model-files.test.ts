/** Files of the embedded model: they agree with each other and the reference. No forward pass here. */
import { describe, expect, test } from "bun:test";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { Template } from "@huggingface/jinja";
import { Tokenizer } from "@huggingface/tokenizers";

const folder = join(import.meta.dir, "../../src/demo/model");
const text = (name: string): string => readFileSync(join(folder, name), "utf8");
const config = JSON.parse(text("config.json"));
const tokenizerJson = JSON.parse(text("tokenizer.json"));
const vectors = JSON.parse(readFileSync(join(import.meta.dir, "../fixtures/demo/vectors.json"), "utf8"));

interface TensorEntry {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly data_offsets: readonly [number, number];
}

function tensors(): Map<string, TensorEntry> {
  const bytes = readFileSync(join(folder, "model.safetensors"));
  const headerBytes = Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.toString("utf8", 8, 8 + headerBytes));
  delete header.__metadata__;
  return new Map(Object.entries(header));
}

/** Every parameter of Qwen3ForCausalLM with tied embeddings, by its configured shape. */
function expectedShapes(): Map<string, number[]> {
  const hidden = config.hidden_size;
  const wide = config.num_attention_heads * config.head_dim;
  const narrow = config.num_key_value_heads * config.head_dim;
  const shapes = new Map([
    ["model.embed_tokens.weight", [config.vocab_size, hidden]],
    ["model.norm.weight", [hidden]],
  ]);
  for (let layer = 0; layer < config.num_hidden_layers; layer++) {
    const parts: Record<string, number[]> = {
      input_layernorm: [hidden],
      post_attention_layernorm: [hidden],
      "self_attn.q_proj": [wide, hidden],
      "self_attn.k_proj": [narrow, hidden],
      "self_attn.v_proj": [narrow, hidden],
      "self_attn.o_proj": [hidden, wide],
      "self_attn.q_norm": [config.head_dim],
      "self_attn.k_norm": [config.head_dim],
      "mlp.gate_proj": [config.intermediate_size, hidden],
      "mlp.up_proj": [config.intermediate_size, hidden],
      "mlp.down_proj": [hidden, config.intermediate_size],
    };
    for (const [part, shape] of Object.entries(parts))
      shapes.set(`model.layers.${layer}.${part}.weight`, shape);
  }
  return shapes;
}

describe("the embedded model's weights", () => {
  test("hold exactly the tensors of the configuration, in bfloat16", () => {
    const shapes = [...tensors()].map(([name, { shape }]) => [name, shape] as const);
    expect(new Map(shapes)).toEqual(expectedShapes());
    expect(new Set([...tensors().values()].map(({ dtype }) => dtype))).toEqual(new Set(["BF16"]));
  });

  test("stay below 8 MB and hold no infinity and no NaN", () => {
    const path = join(folder, "model.safetensors");
    expect(statSync(path).size).toBeLessThan(8_000_000);
    const bytes = readFileSync(path);
    const headerBytes = Number(bytes.readBigUInt64LE(0));
    const values = new Uint16Array(bytes.buffer.slice(bytes.byteOffset + 8 + headerBytes));
    expect(values.length).toBe(3_886_784);
    expect(values.some((value) => (value & 0x7f80) === 0x7f80)).toBe(false);
  });
});

describe("the embedded model's tokenizer", () => {
  const tokenizer = new Tokenizer(tokenizerJson, JSON.parse(text("tokenizer_config.json")));

  test("has as many entries as the embedding has rows, a single character for each byte among them", () => {
    const entries = Object.keys(tokenizerJson.model.vocab);
    expect(entries.length).toBe(config.vocab_size);
    expect(entries.filter((entry) => [...entry].length === 1).length).toBe(256);
  });

  test("gives the reference's ids for every text", () => {
    for (const { text, ids } of vectors.texts) {
      expect([text, tokenizer.encode(text, { add_special_tokens: false }).ids]).toEqual([text, ids]);
    }
  });

  test("generation stops at the ends of a turn and of a text", () => {
    const ends = JSON.parse(text("generation_config.json")).eos_token_id;
    const named = ["<|im_end|>", "<|endoftext|>"].map((special) => tokenizerJson.model.vocab[special]);
    expect(ends).toEqual(named);
    expect(config.eos_token_id).toBe(named[0]);
  });

  test("the chat template renders the reference's conversations", () => {
    const template = new Template(text("chat_template.jinja"));
    for (const { messages, text } of vectors.chats) {
      expect(template.render({ messages, add_generation_prompt: true })).toBe(text);
    }
  });
});
