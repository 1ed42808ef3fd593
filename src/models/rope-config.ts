/**
 * Reads rotary settings in every spelling that checkpoints
 * use; two spellings that contradict each other are an error.
 */
import { type RopeConfig, type RopeScaling, yarnAttentionFactor } from "../layers/rope";
import type { ConfigReader } from "./config-reader";

const defaultTheta = 10_000;

/**
 * Sections that hold the parameters: `rope_parameters` (newer), `rope_scaling`
 * (older), or both; some configurations nest one section per attention type in
 * them. All layers rotate alike here, so whatever is found must mean the same.
 */
function sectionsOf(config: ConfigReader): readonly ConfigReader[] {
  return ["rope_parameters", "rope_scaling"].flatMap((key) => {
    const section = config.section(key);
    if (section === undefined) return [];
    const nested = ["full_attention", "sliding_attention"]
      .map((type) => section.section(type))
      .filter((part) => part !== undefined);
    return nested.length > 0 ? nested : [section];
  });
}

/** A value that may stand under an older and a newer name. */
function either(section: ConfigReader, older: string, newer: string): unknown {
  const [a, b] = [section.raw(older), section.raw(newer)];
  if (a !== undefined && b !== undefined && a !== b) section.fail(`${older} and ${newer} disagree`);
  return b ?? a;
}

function typeOf(section: ConfigReader): string {
  const type = either(section, "type", "rope_type") ?? "default";
  return typeof type === "string" ? type : section.fail("rope_type must be text");
}

function thetaOf(config: ConfigReader, sections: readonly ConfigReader[]): number {
  const given = [config, ...sections]
    .filter((place) => place.has("rope_theta"))
    .map((place) => place.number("rope_theta"));
  if (new Set(given).size > 1) config.fail(`rope_theta is given as ${given.join(" and as ")}`);
  const theta = given[0] ?? defaultTheta;
  if (theta <= 1) config.fail(`rope_theta must be above 1, not ${theta}`);
  return theta;
}

function positive(section: ConfigReader, key: string, fallback?: number): number {
  const value = section.number(key, fallback);
  if (value <= 0) section.fail(`${key} must be positive`);
  return value;
}

/** Positions before the stretching; a configuration that does not say so means those it says it has. */
function originalPositionsOf(section: ConfigReader, maxPositions: number): number {
  const key = "original_max_position_embeddings";
  if (!section.has(key)) section.remark(`${key} is not set: ${maxPositions}, all positions, is used`);
  return positive(section, key, maxPositions);
}

function yarnOf(section: ConfigReader, maxPositions: number): RopeScaling {
  const originalMaxPositions = originalPositionsOf(section, maxPositions);
  const factor = positive(section, "factor", maxPositions / originalMaxPositions);
  const given = either(section, "attn_factor", "attention_factor");
  if (given !== undefined && typeof given !== "number") section.fail("attention_factor must be a number");
  const optional = (key: string) => (section.has(key) ? section.number(key) : undefined);
  return {
    type: "yarn",
    factor,
    betaFast: positive(section, "beta_fast", 32),
    betaSlow: positive(section, "beta_slow", 1),
    originalMaxPositions,
    truncate: section.flag("truncate", true),
    attentionFactor: given ?? yarnAttentionFactor(factor, optional("mscale"), optional("mscale_all_dim")),
  };
}

function scalingOf(section: ConfigReader, maxPositions: number): RopeScaling {
  const type = typeOf(section);
  switch (type) {
    case "default":
      return { type };
    case "linear":
      return { type, factor: positive(section, "factor") };
    case "llama3":
      return {
        type,
        factor: positive(section, "factor"),
        lowFreqFactor: positive(section, "low_freq_factor"),
        highFreqFactor: positive(section, "high_freq_factor"),
        originalMaxPositions: originalPositionsOf(section, maxPositions),
      };
    case "yarn":
      return yarnOf(section, maxPositions);
    default:
      return section.fail(`rope type '${type}' is not supported (default, linear, llama3 and yarn are)`);
  }
}

/** Rotary settings of a decoder with heads of `headDim`. */
export function readRopeConfig(config: ConfigReader, headDim: number, maxPositions: number): RopeConfig {
  const sections = sectionsOf(config);
  const places = [...sections, config].filter((place) => place.has("partial_rotary_factor"));
  const fraction = places[0]?.number("partial_rotary_factor") ?? 1;
  const rotaryDim = Math.floor(headDim * fraction);
  if (fraction <= 0 || fraction > 1 || rotaryDim % 2 !== 0) {
    config.fail(`partial_rotary_factor ${fraction} leaves no even number of dimensions of ${headDim}`);
  }
  const scalings = sections.map((section) => scalingOf(section, maxPositions));
  const scaling = scalings[0] ?? { type: "default" };
  const other = scalings.find((candidate) => !Bun.deepEquals(candidate, scaling));
  if (other !== undefined) {
    config.fail(`rotary settings disagree: ${JSON.stringify(scaling)} and ${JSON.stringify(other)}`);
  }
  return { theta: thetaOf(config, sections), rotaryDim, scaling };
}

/** Positions the model can be served with: scaling schemes that stretch the context say so themselves. */
export function maxPositionsOf(rope: RopeConfig, maxPositionEmbeddings: number): number {
  const { scaling } = rope;
  if (scaling.type === "linear") return Math.floor(maxPositionEmbeddings * scaling.factor);
  if (scaling.type === "yarn") {
    return Math.max(maxPositionEmbeddings, Math.floor(scaling.originalMaxPositions * scaling.factor));
  }
  return maxPositionEmbeddings;
}
