/** Times ops on the card inside a graph, so that launch gaps do not count. */
import type { Device } from "../../../ffi/device";

const warmUps = 3;
const repeats = 20;

/** Median nanoseconds of one of `count` launches that `enqueue` makes; they run as one graph. */
export function medianNs(device: Device, count: number, enqueue: (index: number) => void): number {
  enqueue(0); // a product has to run once before a capture
  device.synchronize();
  const graph = device.capture(() => {
    for (let index = 0; index < count; index++) enqueue(index);
  });
  const begin = device.createEvent(true);
  const end = device.createEvent(true);
  const times: number[] = [];
  for (let i = 0; i < warmUps + repeats; i++) {
    device.recordEvent(begin);
    device.launchGraph(graph);
    device.recordEvent(end);
    device.waitEvent(end);
    if (i >= warmUps) times.push(device.elapsedNs(begin, end) / count);
  }
  device.destroyGraph(graph);
  device.destroyEvent(begin);
  device.destroyEvent(end);
  times.sort((a, b) => a - b);
  return times[repeats / 2] as number;
}
