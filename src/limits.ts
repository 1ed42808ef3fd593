/** Every bound of the process in one place: what can queue, grow or be asked for has its ceiling here. */

/** Largest request body in bytes that is read at all. */
export const maxRequestBodyBytes = 32 * 1024 * 1024;

/** Largest value an id, a token count or a block count may take: they travel as int32. */
export const maxInt32 = 0x7fff_ffff;
