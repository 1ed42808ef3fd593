/** Reads single values from a server's /metrics. */

/** The value of the series `name`, labels included as they are written. */
export async function metricValue(url: string, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const line = text.split("\n").find((candidate) => candidate.startsWith(`${name} `));
  if (line === undefined) throw new Error(`no series ${name}`);
  return Number(line.slice(name.length + 1));
}

/** Waits until the series has `value`; throws when it does not come to it. */
export async function settled(url: string, name: string, value: number, limitMs: number): Promise<void> {
  const beginMs = performance.now();
  let last = await metricValue(url, name);
  while (last !== value) {
    if (performance.now() - beginMs > limitMs) throw new Error(`${name} is ${last}, not ${value}`);
    await Bun.sleep(10);
    last = await metricValue(url, name);
  }
}
