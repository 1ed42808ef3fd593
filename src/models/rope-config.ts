/** Reads rotary settings in every spelling that checkpoints use; two spellings that contradict each other are an error. */
import { type RopeConfig, type RopeScaling, yarnAttentionFactor } from "../layers/rope";
import type { ConfigReader } from "./config-reader";

const defaultTheta = 10_000;

/** The section that holds the parameters: `rope_parameters` (newer) or `rope_scaling` (older). */
function sectionOf(config: ConfigReader): ConfigReader | undefined {
  const parameters = config.section("rope_parameters");
  const scaling = config.section("rope_scaling");
  if (parameters !== undefined && scaling !== undefined) {
    for (const key of scaling.keys()) {
      const [a, b] = [scaling.raw(key), parameters.raw(key)];
      if (a !== undefined && b !== undefined && a !== b) {
        config.fail(`rope_scaling and rope_parameters disagree about ${key}`);
      }
    }
  }
  const section = parameters ?? scaling;
  // Some configurations give one section per attention type; a plain decoder has one type.
  return section?.section("full_attention") ?? section;
}

function typeOf(section: ConfigReader | undefined): string {
  if (section === undefined) return "default";
  const [older, newer] = [section.raw("type"), section.raw("rope_type")];
  if (older !== undefined && newer !== undefined && older !== newer)
    section.fail("type and rope_type disagree");
  return section.text(newer === undefined ? "type" : "rope_type", "default");
}

function thetaOf(config: ConfigReader, section: ConfigReader | undefined): number {
  const outer = config.raw("rope_theta");
  const inner = section?.raw("rope_theta");
  if (outer !== undefined && inner !== undefined && outer !== inner)
    config.fail("rope_theta is given twice, differently");
  const theta =
    inner !== undefined ? section?.number("rope_theta") : config.number("rope_theta", defaultTheta);
  if (theta === undefined || theta <= 1) config.fail(`rope_theta must be above 1, not ${theta}`);
  return theta;
}

function positive(section: ConfigReader, key: string, fallback?: number): number {
  const value = section.number(key, fallback);
  if (value <= 0) section.fail(`${key} must be positive`);
  return value;
}

function yarnOf(section: ConfigReader, maxPositions: number): RopeScaling {
  const originalMaxPositions = positive(section, "original_max_position_embeddings", maxPositions);
  const factor = positive(section, "factor", maxPositions / originalMaxPositions);
  const given = section.raw("attention_factor") ?? section.raw("attn_factor");
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

function scalingOf(
  section: ConfigReader | undefined,
  maxPositions: number,
  config: ConfigReader,
): RopeScaling {
  const type = typeOf(section);
  if (section === undefined || type === "default") return { type: "default" };
  switch (type) {
    case "linear":
      return { type, factor: positive(section, "factor") };
    case "llama3":
      return {
        type,
        factor: positive(section, "factor"),
        lowFreqFactor: positive(section, "low_freq_factor"),
        highFreqFactor: positive(section, "high_freq_factor"),
        originalMaxPositions: positive(section, "original_max_position_embeddings", maxPositions),
      };
    case "yarn":
      return yarnOf(section, maxPositions);
    default:
      return config.fail(`rope type '${type}' is not supported (default, linear, llama3 and yarn are)`);
  }
}

/** Rotary settings of a decoder with heads of `headDim`. */
export function readRopeConfig(config: ConfigReader, headDim: number, maxPositions: number): RopeConfig {
  const section = sectionOf(config);
  const fraction = section?.has("partial_rotary_factor")
    ? section.number("partial_rotary_factor")
    : config.number("partial_rotary_factor", 1);
  const rotaryDim = Math.floor(headDim * fraction);
  if (fraction <= 0 || fraction > 1 || rotaryDim % 2 !== 0) {
    config.fail(`partial_rotary_factor ${fraction} leaves no even number of dimensions of ${headDim}`);
  }
  return { theta: thetaOf(config, section), rotaryDim, scaling: scalingOf(section, maxPositions, config) };
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
