/** Every bound of the process in one place: what can queue, grow or be asked for has its ceiling here. */

/** Largest request body in bytes that is read at all. */
export const maxRequestBodyBytes = 32 * 1024 * 1024;

/** Largest value an id, a token count or a block count may take: they travel as int32. */
export const maxInt32 = 0x7fff_ffff;

/**
 * Words of request tables, hash chains and generated tokens that are kept for reuse after their requests
 * ended.
 */
export const maxPooledBufferWords = 16 * 1024 * 1024;

/** Machine code of kernels compiled at run time that is kept on disk; beyond it the oldest files go. */
export const maxCachedKernels = 256;

/** Page-table entries that travel to the device in one scatter; more go in several. */
export const maxPageTableUpdates = 16_384;

/** Largest header of a safetensors file that is parsed; the format's own ceiling. */
export const maxSafetensorsHeaderBytes = 100_000_000;

// --- text in and out ---

/**
 * Longest text in UTF-16 units that the main thread tokenizes itself; longer ones go to the tokenizer's
 * Worker.
 */
export const maxInlineTokenizeLength = 64 * 1024;

/** Texts that may wait for the tokenizer's Worker; one more is refused as overload. */
export const maxPendingTokenizations = 256;

/** Nodes a chat template may evaluate for one conversation (a third of a second's work). */
export const maxTemplateSteps = 300_000;

/** How deep the nodes of a chat template, macros included, may nest while it is evaluated. */
export const maxTemplateDepth = 500;

/** Longest text in UTF-16 units that a chat template may build. */
export const maxTemplateTextLength = 64 * 1024 * 1024;

/** End tokens and stop ids of one request that min_tokens holds back. */
export const maxSuppressedIds = 256;

/** Alternatives a position that are selected on the device; more means reading the whole vocabulary. */
export const maxTopLogprobs = 64;

// --- server ---

/**
 * A request body must be complete within this time; a trickle would keep an idle timeout from ever coming.
 */
export const bodyDeadlineMs = 30_000;

/**
 * A connection that says nothing is closed after this many seconds; lifted while a request is being
 * answered.
 */
export const idleTimeoutSeconds = 30;

/**
 * A silent stream sends a comment after this time, then at this interval; both far below any proxy's
 * patience.
 */
export const firstKeepAliveMs = 5_000;
export const nextKeepAliveMs = 10_000;

/** Bytes that may wait for a client that does not read; with more its request is ended. */
export const maxStreamBacklogBytes = 8 * 1024 * 1024;

/** Choices (prompts times n) of one request. */
export const maxChoicesPerRequest = 256;

/** Choices of one prompt. */
export const maxChoicesPerPrompt = 128;

/** Stop strings of one request, and the length of each in UTF-16 units. */
export const maxStopStrings = 32;
export const maxStopStringLength = 1_024;

/** Stop token ids and logit biases of one request. */
export const maxStopTokenIds = 128;
export const maxLogitBiases = 1_024;

/** Messages of a conversation and tools of a request. */
export const maxMessages = 10_000;
export const maxTools = 512;

/** Without progress for this long while it has work, the engine is not ready. */
export const maxEngineSilenceMs = 30_000;

/** Requests that may be queued or running in the engine at once; more are refused with 429. */
export const maxLiveRequests = 4_096;

/** Rows of logits that fit at once at least, so that log-probabilities of a prompt need few passes. */
export const minLogitRows = 32;

/** Tokens of one step unless told otherwise; a CPU step stays short so that others get their turn. */
export const maxDefaultBatchedTokens = { cpu: 512, cuda: 8192 } as const;

/** Cache pool of a CPU run in bytes unless told otherwise; a quarter of free memory if that is less. */
export const maxDefaultCpuCacheBytes = 4 * 2 ** 30;

/** Milliseconds between two sets of gauges from a busy engine. */
export const gaugeIntervalMs = 100;

/** Generated tokens that an admission pays in advance; each retraction of the request adds as many. */
export const headroomStepTokens = 4096;

/** Milliseconds of idleness after which the engine walks its books. */
export const idleCheckDelayMs = 1000;

/** Blocks that one slice of that walk looks at. */
export const integrityCheckBlocks = 4096;

/** Rows of plans after which the engine collects its young garbage, which then takes a fraction of a ms. */
export const rowsPerCollection = 16_384;

/** Bytes of old garbage that the engine lets lie, beside as much as lives, until it collects all. */
export const maxOldGarbageBytes = 32 * 1024 * 1024;

/** Milliseconds between two signs of life while weights are loaded. */
export const progressIntervalMs = 1000;

/** Responses of one WebSocket connection that later requests can go on from, and the length of their text. */
export const maxChainedResponses = 1_024;
export const maxChainTextLength = 16 * 1024 * 1024;

/** Requests that may wait on one WebSocket connection behind the running one. */
export const maxQueuedSocketRequests = 32;

/** Log-probabilities of one answer that is not streamed, where they cover the whole vocabulary. */
export const maxWholeVocabularyLogprobs = 16 * 1024 * 1024;

/** New prompts that one round tries in vain before it leaves the rest of the queue to the next one. */
export const maxAdmissionAttemptsPerRound = 512;

/** Prefix pages that a round looks up in vain, about a ms; one that must be hashed first counts eightfold. */
export const maxAdmissionWorkPerRound = 16_384;

/** Share of both that goes to the head of the queue when the round before did not reach its end. */
export const headShareOfAttempts = 0.5;

/** Rows of one step: the scheduler has a slot and each plan storage for as many. */
export const maxBatchRows = 65_536;

/** Entries of one group's block tables, a GiB: requests at once times blocks of the longest. */
export const maxBlockTableEntries = 2 ** 28;

/** Experts that a token may be sent to; the kernels keep as many choices of a row. */
export const maxExpertsPerToken = 64;
