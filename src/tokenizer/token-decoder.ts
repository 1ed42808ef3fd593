/**
 * Reads the `decoder` of tokenizer.json into a function from one token to its bytes. Decoders that look at
 * neighbouring tokens (CTC, BPE with word suffixes, WordPiece) belong to models that do not generate and are
 * refused.
 */
import { GranaryError } from "../assert";
import type { JsonObject, JsonValue } from "./json";
import { isObject } from "./json";

export interface TokenDecoder {
  /** Bytes of a token of the model's vocabulary wherever it stands but at the start of a text. */
  bytesOf(token: string): Uint8Array;
  /** Bytes of an added token, which is spelled in plain text and not in the vocabulary's alphabet. */
  bytesOfAdded(content: string): Uint8Array;
  /** Spaces that are dropped where a text begins. */
  readonly leadingSpaces: number;
  /** Tokens are words with a space between them. */
  readonly joinsWithSpace: boolean;
}

type Piece = string | Uint8Array;
type Step = (piece: Piece) => Piece;

const utf8 = new TextEncoder();
const byteFallbackPattern = /^<0x([0-9A-Fa-f]{2})>$/;
const byteOfCharacter = byteLevelAlphabet();

export function readTokenDecoder(decoder: JsonValue | undefined): TokenDecoder {
  if (!isObject(decoder)) {
    const bytesOf = (token: string) => utf8.encode(token);
    return { bytesOf, bytesOfAdded: bytesOf, leadingSpaces: 0, joinsWithSpace: true };
  }
  const steps: Step[] = [];
  const textSteps: Step[] = [];
  let leadingSpaces = 0;
  let isFused = false;
  const sequence =
    decoder.type === "Sequence" && Array.isArray(decoder.decoders) ? decoder.decoders : [decoder];
  for (const part of sequence.filter(isObject)) {
    if (part.type === "Fuse") isFused = true;
    else if (part.type === "Strip" && isFused && part.content === " ")
      leadingSpaces = Number(part.start ?? 0);
    else {
      const step = readStep(part);
      steps.push(step);
      if (part.type !== "ByteLevel" && part.type !== "ByteFallback") textSteps.push(step);
    }
    if (part.type === "Metaspace" && part.prepend_scheme !== "never" && part.add_prefix_space !== false) {
      leadingSpaces = 1;
    }
  }
  return {
    bytesOf: (token) => runSteps(steps, token),
    bytesOfAdded: (content) => runSteps(textSteps, content),
    leadingSpaces,
    joinsWithSpace: false,
  };
}

function runSteps(steps: readonly Step[], token: string): Uint8Array {
  const piece = steps.reduce<Piece>((value, step) => step(value), token);
  return typeof piece === "string" ? utf8.encode(piece) : piece;
}

function readStep(part: JsonObject): Step {
  switch (part.type) {
    case "ByteLevel":
      return onText(byteLevelBytes);
    case "ByteFallback":
      return onText((text) => {
        const match = byteFallbackPattern.exec(text);
        return match === null ? text : Uint8Array.of(Number.parseInt(match[1], 16));
      });
    case "Metaspace": {
      const replacement = typeof part.replacement === "string" ? part.replacement : "\u2581";
      return onText((text) => text.replaceAll(replacement, " "));
    }
    case "Replace": {
      const pattern = readPattern(part.pattern);
      const content = String(part.content ?? "");
      return onText((text) => text.replaceAll(pattern, () => content));
    }
    case "Strip":
      return onText((text) =>
        strip(text, String(part.content), Number(part.start ?? 0), Number(part.stop ?? 0)),
      );
    default:
      throw new GranaryError("tokenizer_unsupported", `the decoder ${String(part.type)} is not supported`);
  }
}

function onText(change: (text: string) => Piece): Step {
  return (piece) => (typeof piece === "string" ? change(piece) : piece);
}

function readPattern(pattern: JsonValue | undefined): string | RegExp {
  if (isObject(pattern) && typeof pattern.String === "string") return pattern.String;
  if (isObject(pattern) && typeof pattern.Regex === "string") return new RegExp(pattern.Regex, "gu");
  throw new GranaryError("tokenizer_unsupported", "a Replace decoder has no pattern");
}

function strip(text: string, content: string, maxStart: number, maxStop: number): string {
  let begin = 0;
  let end = text.length;
  while (begin < maxStart && begin < end && text[begin] === content) begin += 1;
  while (text.length - end < maxStop && end > begin && text[end - 1] === content) end -= 1;
  return text.slice(begin, end);
}

/** A character outside the byte alphabet means that the token was never spelled in it. */
function byteLevelBytes(token: string): Uint8Array {
  const bytes = new Uint8Array(token.length);
  for (let at = 0; at < token.length; at++) {
    const byte = byteOfCharacter.get(token.charCodeAt(at));
    if (byte === undefined) return utf8.encode(token);
    bytes[at] = byte;
  }
  return bytes;
}

/** Printable Latin-1 stands for itself, the other bytes follow from U+0100 on. */
function byteLevelAlphabet(): ReadonlyMap<number, number> {
  const byteOf = new Map<number, number>();
  let next = 0x100;
  for (let byte = 0; byte < 256; byte++) {
    const isPrintable =
      (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
    byteOf.set(isPrintable ? byte : next++, byte);
  }
  return byteOf;
}
