/** Every bound of the process in one place: what can queue, grow or be asked for has its ceiling here. */

/** Largest request body in bytes that is read at all. */
export const maxRequestBodyBytes = 32 * 1024 * 1024;

/** Largest value an id, a token count or a block count may take: they travel as int32. */
export const maxInt32 = 0x7fff_ffff;

/** Words of request tables, hash chains and generated tokens that are kept for reuse after their requests ended. */
export const maxPooledBufferWords = 16 * 1024 * 1024;

/** Page-table entries that travel to the device in one scatter; more go in several. */
export const maxPageTableUpdates = 16_384;

/** Largest header of a safetensors file that is parsed; the format's own ceiling. */
export const maxSafetensorsHeaderBytes = 100_000_000;

// --- text in and out ---

/** Longest text in UTF-16 units that the main thread tokenizes itself; longer ones go to the tokenizer's Worker. */
export const maxInlineTokenizeLength = 64 * 1024;

/** Texts that may wait for the tokenizer's Worker; one more is refused as overload. */
export const maxPendingTokenizations = 256;

/** Nodes a chat template may evaluate for one conversation (a third of a second's work). */
export const maxTemplateSteps = 300_000;

/** How deep the nodes of a chat template, macros included, may nest while it is evaluated. */
export const maxTemplateDepth = 500;

/** Longest text in UTF-16 units that a chat template may build. */
export const maxTemplateTextLength = 64 * 1024 * 1024;
