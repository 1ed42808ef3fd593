/**
 * The id by which client and log speak about one request: the client's own if it is a plain word, else a new
 * one.
 */

const acceptable = /^[\w.:-]{1,128}$/;

export function requestIdOf(headers: Headers): string {
  const given = headers.get("x-request-id");
  return given !== null && acceptable.test(given) ? given : crypto.randomUUID();
}
