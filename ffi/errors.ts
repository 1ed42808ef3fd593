/** The one error type of the native boundary: what a library, the driver or the loader answered. */

const statusNames = ["ok", "invalid", "unsupported", "out_of_memory", "device", "capture"] as const;

export type NativeStatus = (typeof statusNames)[number];

/** A native call failed. `status` tells whether the caller, the machine or the device is at fault. */
export class NativeError extends Error {
  readonly code: string;
  readonly status: NativeStatus;

  constructor(status: NativeStatus, message: string) {
    super(message);
    this.name = "NativeError";
    this.status = status;
    this.code = `native_${status}`;
  }
}

/** The name of a status number of the C ABI. */
export function nativeStatus(status: number): NativeStatus {
  return statusNames[status] ?? "device";
}
