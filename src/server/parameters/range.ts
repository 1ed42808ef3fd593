/** Range checks whose complaint names the field. */
import { invalidParam } from "../http/api-error";

type Given = number | null | undefined;

/** `value`, or `fallback` where it was not given; outside [min, max] is the client's mistake. */
export function inRange(param: string, value: Given, min: number, max: number, fallback: number): number {
  if (value === undefined || value === null) return fallback;
  if (!(value >= min && value <= max) || Object.is(value, -0)) {
    throw invalidParam(param, `${param} must be between ${min} and ${max}.`);
  }
  return value;
}

/** As inRange, with undefined kept. */
export function optionalInRange(param: string, value: Given, min: number, max: number): number | undefined {
  return value === undefined || value === null ? undefined : inRange(param, value, min, max, min);
}
