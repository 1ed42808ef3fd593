/** The workloads' token generator, as bench/workloads/common.json defines it. */

function mix32(value: number): number {
  let x = value >>> 0;
  x ^= x >>> 16;
  x = Math.imul(x, 0x7feb352d);
  x ^= x >>> 15;
  x = Math.imul(x, 0x846ca68b);
  x ^= x >>> 16;
  return x >>> 0;
}

const seed = 0x5eed0001;

/** Token p of stream s. */
export function token(stream: number, position: number): number {
  return 1 + (mix32(mix32((seed + stream) >>> 0) + position) % 127999);
}

/** Tokens [0, count) of a stream. */
export function streamTokens(stream: number, count: number): Int32Array {
  return Int32Array.from({ length: count }, (_, position) => token(stream, position));
}

const systemPromptTokens = 1024;

/** Token p of a conversation: a shared system prompt, then the conversation's own stream. */
export function conversationToken(conversation: number, position: number): number {
  return token(position < systemPromptTokens ? 0 : conversation + 1, position);
}

const conversations = new Map<number, Int32Array>();
const prompts = new Map<number, Int32Array>();

/** The first `count` tokens of a conversation; made once, for nobody ever writes to a prompt. */
export function conversationTokens(conversation: number, count: number): Int32Array {
  const key = conversation * 4096 + count;
  let prompt = prompts.get(key);
  if (prompt === undefined) {
    let all = conversations.get(conversation);
    if (all === undefined) {
      all = Int32Array.from({ length: 3584 }, (_, position) => conversationToken(conversation, position));
      conversations.set(conversation, all);
    }
    prompt = all.subarray(0, count);
    prompts.set(key, prompt);
  }
  return prompt;
}

/** The order of active-set-64: which conversation takes its next turn. */
export function activeSetOrder(): [number, number][] {
  const active = Array.from({ length: 64 }, (_, i) => i);
  const turns = new Map<number, number>();
  const order: [number, number][] = [];
  let next = 64;
  for (let i = 0; i < 2048; i++) {
    const j = mix32((0xc0ffee + i) >>> 0) % active.length;
    const conversation = active[j];
    const turn = turns.get(conversation) ?? 0;
    order.push([conversation, turn]);
    turns.set(conversation, turn + 1);
    if (turn + 1 < 8) continue;
    if (next < 256) active[j] = next++;
    else active[j] = active[active.length - 1];
    if (active.length > 0 && next >= 256 && active[j] === active[active.length - 1]) active.length--;
  }
  return order;
}

/** Running FNV-1a over tokens, for the vectors. */
export function fnv1a32(tokens: ArrayLike<number>, start = 2166136261): number {
  let hash = start >>> 0;
  for (let i = 0; i < tokens.length; i++) {
    for (let shift = 0; shift < 32; shift += 8) {
      hash = Math.imul(hash ^ ((tokens[i] >>> shift) & 255), 16777619) >>> 0;
    }
  }
  return hash;
}
