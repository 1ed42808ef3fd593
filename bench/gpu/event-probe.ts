/** Device time of steps by events: how long each one runs, and how long the device idles between two. */
import type { Address, Device } from "../../ffi/device";
import type { StepProbe } from "../../src/executor/model-executor";

export class EventProbe implements StepProbe {
  readonly #device: Device;
  #begins: Address[] = [];
  #ends: Address[] = [];

  constructor(device: Device) {
    this.#device = device;
  }

  stepBegins(): void {
    this.#begins.push(this.#record());
  }

  stepEnds(): void {
    this.#ends.push(this.#record());
  }

  /** Milliseconds of each step and microseconds between each two, since the last call. */
  take(): { readonly stepMs: number[]; readonly gapUs: number[] } {
    this.#device.synchronize();
    const [begins, ends] = [this.#begins, this.#ends];
    this.#begins = [];
    this.#ends = [];
    const stepMs = begins.map((begin, i) => this.#device.elapsedNs(begin, ends[i] as Address) / 1e6);
    const gapUs = begins.slice(1).map((begin, i) => this.#device.elapsedNs(ends[i] as Address, begin) / 1e3);
    for (const event of [...begins, ...ends]) this.#device.destroyEvent(event);
    return { stepMs, gapUs };
  }

  #record(): Address {
    const event = this.#device.createEvent(true);
    this.#device.recordEvent(event);
    return event;
  }
}
