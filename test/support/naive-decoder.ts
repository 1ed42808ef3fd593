/**
 * A plain decoder in loops and double precision, straight from the configuration's JSON: no cache, no
 * batches, no fused anything. Twin of the models on a device; slow, short, and meant to be read.
 */
import type { JsonObject } from "../../src/models/config-reader";
import { isSparseLayer } from "./decoder-tensors";

type Vector = Float64Array;

/** Values of a checkpoint tensor, row-major. */
export type WeightsOf = (name: string) => Vector;

const number = (config: JsonObject, key: string, fallback?: number): number =>
  (config[key] as number | undefined) ?? (fallback as number);

/** weight · x (+ bias), with one row of weight an output. */
function linear(x: Vector, weight: Vector, bias?: Vector): Vector {
  const columns = x.length;
  return Float64Array.from({ length: weight.length / columns }, (_, row) => {
    let sum = bias?.[row] ?? 0;
    for (let column = 0; column < columns; column++) {
      sum += (weight[row * columns + column] as number) * (x[column] as number);
    }
    return sum;
  });
}

function rmsNorm(x: Vector, weight: Vector, epsilon: number): Vector {
  const meanSquare = x.reduce((sum, value) => sum + value * value, 0) / x.length;
  return x.map((value, i) => (value / Math.sqrt(meanSquare + epsilon)) * (weight[i] as number));
}

function softmax(scores: readonly number[]): number[] {
  const largest = Math.max(...scores);
  const exponents = scores.map((score) => Math.exp(score - largest));
  const sum = exponents.reduce((total, value) => total + value, 0);
  return exponents.map((value) => value / sum);
}

const add = (a: Vector, b: Vector): Vector => a.map((value, i) => value + (b[i] as number));

class NaiveDecoder {
  readonly #config: JsonObject;
  readonly #weights: WeightsOf;
  readonly #headDim: number;
  readonly #epsilon: number;

  constructor(config: JsonObject, weights: WeightsOf) {
    this.#config = config;
    this.#weights = weights;
    this.#headDim = number(
      config,
      "head_dim",
      number(config, "hidden_size") / number(config, "num_attention_heads"),
    );
    this.#epsilon = number(config, "rms_norm_eps");
  }

  logits(tokens: readonly number[]): Vector[] {
    const hidden = number(this.#config, "hidden_size");
    const embedding = this.#weights("model.embed_tokens.weight");
    let stream: Vector[] = tokens.map((token) => embedding.slice(token * hidden, (token + 1) * hidden));
    for (let layer = 0; layer < number(this.#config, "num_hidden_layers"); layer++) {
      const prefix = `model.layers.${layer}`;
      const normed = stream.map((x) => this.#norm(x, `${prefix}.input_layernorm`));
      stream = this.#attend(normed, layer).map((x, i) => add(stream[i] as Vector, x));
      stream = stream.map((x) =>
        add(x, this.#feedForward(this.#norm(x, `${prefix}.post_attention_layernorm`), layer)),
      );
    }
    const isTied = this.#config.tie_word_embeddings === true;
    const output = isTied ? embedding : this.#weights("lm_head.weight");
    return stream.map((x) => linear(this.#norm(x, "model.norm"), output));
  }

  #norm(x: Vector, name: string): Vector {
    return rmsNorm(x, this.#weights(`${name}.weight`), this.#epsilon);
  }

  #project(x: Vector, name: string, hasBias: boolean): Vector {
    return linear(x, this.#weights(`${name}.weight`), hasBias ? this.#weights(`${name}.bias`) : undefined);
  }

  /** Heads of one projection at one position, normed and turned where that is asked for. */
  #heads(x: Vector, layer: number, name: "q" | "k" | "v", position: number): Vector[] {
    const prefix = `model.layers.${layer}.self_attn`;
    const type = this.#config.model_type as string;
    const flat = this.#project(
      x,
      `${prefix}.${name}_proj`,
      this.#config.attention_bias === true || type === "qwen2",
    );
    const heads = Array.from({ length: flat.length / this.#headDim }, (_, head) =>
      flat.slice(head * this.#headDim, (head + 1) * this.#headDim),
    );
    if (name === "v") return heads;
    const isNormed = type.startsWith("qwen3");
    return heads
      .map((head) => (isNormed ? this.#norm(head, `${prefix}.${name}_norm`) : head))
      .map((head) => this.#rotate(head, position));
  }

  /** Turns pairs (i, i + half) of the first dimensions. */
  #rotate(head: Vector, position: number): Vector {
    const scaling = this.#config.rope_scaling as { type: string; factor: number } | undefined;
    if (scaling !== undefined && scaling.type !== "linear")
      throw new Error("the twin knows linear scaling only");
    const dims = Math.floor(this.#headDim * number(this.#config, "partial_rotary_factor", 1));
    const theta = number(this.#config, "rope_theta", 10_000);
    const turned = head.slice();
    for (let i = 0; i < dims / 2; i++) {
      const angle = (position / (scaling?.factor ?? 1)) * theta ** ((-2 * i) / dims);
      const [a, b] = [head[i] as number, head[i + dims / 2] as number];
      turned[i] = a * Math.cos(angle) - b * Math.sin(angle);
      turned[i + dims / 2] = b * Math.cos(angle) + a * Math.sin(angle);
    }
    return turned;
  }

  #attend(normed: readonly Vector[], layer: number): Vector[] {
    const [q, k, v] = (["q", "k", "v"] as const).map((name) =>
      normed.map((x, position) => this.#heads(x, layer, name, position)),
    ) as [Vector[][], Vector[][], Vector[][]];
    const types = this.#config.layer_types as string[] | undefined;
    const slides =
      types === undefined ? this.#config.model_type === "mistral" : types[layer] === "sliding_attention";
    const window = slides ? number(this.#config, "sliding_window", normed.length) : normed.length;
    const group = number(this.#config, "num_attention_heads") / number(this.#config, "num_key_value_heads");
    return q.map((heads, position) => {
      const first = Math.max(0, position - window + 1);
      const outputs = heads.map((head, h) => {
        const kv = Math.floor(h / group);
        const visible = k.slice(first, position + 1).map((keys) => keys[kv] as Vector);
        const dot = (key: Vector) => key.reduce((sum, value, i) => sum + value * (head[i] as number), 0);
        const shares = softmax(visible.map((key) => dot(key) / Math.sqrt(this.#headDim)));
        return shares.reduce((sum, share, j) => {
          const value = (v[first + j] as Vector[])[kv] as Vector;
          return sum.map((total, i) => total + share * (value[i] as number));
        }, new Float64Array(this.#headDim));
      });
      const joined = Float64Array.from(outputs.flatMap((output) => [...output]));
      const name = `model.layers.${layer}.self_attn.o_proj`;
      return this.#project(joined, name, this.#config.attention_bias === true);
    });
  }

  #mlp(x: Vector, prefix: string, hasBias: boolean): Vector {
    const up = this.#project(x, `${prefix}.up_proj`, hasBias);
    const gate = this.#project(x, `${prefix}.gate_proj`, hasBias);
    const activated = gate.map((value, i) => (value / (1 + Math.exp(-value))) * (up[i] as number));
    return this.#project(activated, `${prefix}.down_proj`, hasBias);
  }

  #feedForward(x: Vector, layer: number): Vector {
    const prefix = `model.layers.${layer}.mlp`;
    if (!isSparseLayer(this.#config, layer)) return this.#mlp(x, prefix, this.#config.mlp_bias === true);
    const shares = softmax([...this.#project(x, `${prefix}.gate`, false)]);
    const ranked = shares
      .map((share, expert) => ({ share, expert }))
      .sort((a, b) => b.share - a.share)
      .slice(0, number(this.#config, "num_experts_per_tok"));
    const kept = ranked.reduce((sum, { share }) => sum + share, 0);
    const divisor = this.#config.norm_topk_prob === true ? kept : 1;
    return ranked.reduce((sum, { share, expert }) => {
      const output = this.#mlp(x, `${prefix}.experts.${expert}`, false);
      return sum.map((total, i) => total + (share / divisor) * (output[i] as number));
    }, new Float64Array(x.length));
  }
}

/** Logits after every token. */
export function naiveLogits(config: JsonObject, weights: WeightsOf, tokens: readonly number[]): Vector[] {
  return new NaiveDecoder(config, weights).logits(tokens);
}
