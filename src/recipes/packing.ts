/**
 * How many blocks of each group share one LCM block: by byte
 * ratio, by exact strides where planes demand it, or pinned.
 */
import { GranaryError } from "../assert";
import type { CacheFieldSpec, CacheGroupDeclaration } from "./cache-spec";
import { checkFieldSpec, dtypeWidthBytes, payloadBytes } from "./cache-spec";
import { alignUp, equal, gcd, lcm, multiply, type Rational, rational } from "./rational";

/** One field with the group it belongs to. */
export interface Tenant {
  readonly groupId: string;
  readonly field: CacheFieldSpec;
}

export type Packing = ReadonlyMap<string, number>;

function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** All fields in (plane, group, field) order; ids must be unique. */
export function tenantsOf(groups: readonly CacheGroupDeclaration[]): readonly Tenant[] {
  const tenants = groups.flatMap(({ spec, fields }) =>
    fields.map((field) => ({ groupId: spec.groupId, field })),
  );
  for (const { field } of tenants) checkFieldSpec(field);
  if (new Set(tenants.map(({ field }) => field.fieldId)).size !== tenants.length) {
    throw new GranaryError("invalid_cache_fields", "field ids must be unique");
  }
  return tenants.sort(
    (a, b) =>
      compareText(a.field.planeId, b.field.planeId) ||
      compareText(a.groupId, b.groupId) ||
      compareText(a.field.fieldId, b.field.fieldId),
  );
}

export const isExact = (field: CacheFieldSpec): boolean => field.exactPageStride ?? true;

export function rawBytesOf(group: CacheGroupDeclaration): number {
  return group.fields.reduce((sum, field) => sum + payloadBytes(field), 0);
}

/** Bytes of exact fields by plane, then by group. */
function exactBytesByPlane(tenants: readonly Tenant[]): ReadonlyMap<string, ReadonlyMap<string, number>> {
  const planes = new Map<string, Map<string, number>>();
  for (const { groupId, field } of tenants) {
    if (!isExact(field)) continue;
    const plane = planes.get(field.planeId) ?? new Map<string, number>();
    planes.set(field.planeId, plane);
    plane.set(groupId, (plane.get(groupId) ?? 0) + payloadBytes(field));
  }
  return planes;
}

type Edges = Map<string, { readonly to: string; readonly factor: Rational }[]>;

/** packing[to] = packing[from] * factor, for neighbours that share a plane. */
function strideEdges(tenants: readonly Tenant[]): Edges {
  const edges: Edges = new Map();
  const add = (from: string, to: string, factor: Rational) => {
    edges.set(from, [...(edges.get(from) ?? []), { to, factor }]);
  };
  for (const plane of exactBytesByPlane(tenants).values()) {
    const groups = [...plane.keys()].sort(compareText);
    for (let i = 0; i + 1 < groups.length; i++) {
      const a = groups[i] as string;
      const b = groups[i + 1] as string;
      add(a, b, rational(plane.get(a) as number, plane.get(b) as number));
      add(b, a, rational(plane.get(b) as number, plane.get(a) as number));
    }
  }
  return edges;
}

/** Walks one component from `start`; undefined when two planes contradict each other. */
function solveComponent(start: string, edges: Edges): Map<string, Rational> | undefined {
  const ratios = new Map<string, Rational>([[start, rational(1, 1)]]);
  const queue = [start];
  for (let from = queue.shift(); from !== undefined; from = queue.shift()) {
    for (const { to, factor } of edges.get(from) ?? []) {
      const ratio = multiply(ratios.get(from) as Rational, factor);
      const known = ratios.get(to);
      if (known === undefined) {
        ratios.set(to, ratio);
        queue.push(to);
      } else if (!equal(known, ratio)) return undefined;
    }
  }
  return ratios;
}

/**
 * Packings that give every exact field of a shared plane its own payload as stride, in the smallest integers;
 * empty when there is no such solution. Groups that share no plane with another are left out.
 */
export function exactStridePacking(tenants: readonly Tenant[]): Packing {
  const edges = strideEdges(tenants);
  const packing = new Map<string, number>();
  for (const start of [...edges.keys()].sort(compareText)) {
    if (packing.has(start)) continue;
    const ratios = solveComponent(start, edges);
    if (ratios === undefined) return new Map();
    const denominator = lcm(...[...ratios.values()].map((ratio) => ratio.denominator));
    const scaled = [...ratios].map(
      ([group, ratio]) => [group, (ratio.numerator * denominator) / ratio.denominator] as const,
    );
    const divisor = scaled.reduce((common, [, value]) => gcd(common, value), 0);
    for (const [group, value] of scaled) packing.set(group, value / divisor);
  }
  return packing;
}

/** Packing of every group from byte ratios, exact strides and pins, in rising order of force. */
export function choosePacking(
  groups: readonly CacheGroupDeclaration[],
  tenants: readonly Tenant[],
  pins: Packing,
): Map<string, number> {
  const ids = new Set(groups.map(({ spec }) => spec.groupId));
  for (const [group, count] of pins) {
    if (!ids.has(group))
      throw new GranaryError("invalid_packing", `packing names '${group}', a group outside the plan`);
    if (!Number.isInteger(count) || count <= 0) {
      throw new GranaryError("invalid_packing", `packing of '${group}' must be a positive integer`);
    }
  }
  const widest = Math.max(...groups.map(rawBytesOf));
  const packing = new Map<string, number>();
  for (const group of groups) {
    packing.set(group.spec.groupId, Math.max(1, Math.floor(widest / rawBytesOf(group))));
  }
  for (const [group, count] of exactStridePacking(tenants)) packing.set(group, count);
  for (const [group, count] of pins) packing.set(group, count);
  return packing;
}

/** Lets a group without exact fields fill what the planes have anyway. Only where nothing is pinned. */
export function growFlexibleGroups(
  groups: readonly CacheGroupDeclaration[],
  tenants: readonly Tenant[],
  endOffsets: (planeId: string, groupId: string) => number,
  packing: Map<string, number>,
  alignment: number,
): void {
  const isFlexible = (id: string) => tenants.every(({ groupId, field }) => groupId !== id || !isExact(field));
  const flexible = groups.map(({ spec }) => spec.groupId).filter(isFlexible);
  if (flexible.length === 0 || flexible.length === groups.length) return;
  const fixedBytes = new Map<string, number>();
  for (const planeId of new Set(tenants.map(({ field }) => field.planeId))) {
    const residents = tenants.filter(
      ({ groupId, field }) => field.planeId === planeId && !flexible.includes(groupId),
    );
    if (residents.length === 0) continue;
    const needed = Math.max(
      ...residents.map(({ groupId }) => (packing.get(groupId) as number) * endOffsets(planeId, groupId)),
    );
    const units = residents.map(
      ({ groupId, field }) => (packing.get(groupId) as number) * dtypeWidthBytes(field.dtype),
    );
    fixedBytes.set(planeId, alignUp(needed, lcm(alignment, ...units)));
  }
  for (const groupId of flexible) {
    const own = tenants.filter((tenant) => tenant.groupId === groupId);
    const planes = [...new Set(own.map(({ field }) => field.planeId))];
    if (planes.some((planeId) => !fixedBytes.has(planeId))) continue;
    const element = lcm(...own.map(({ field }) => dtypeWidthBytes(field.dtype)));
    const room = planes.map((planeId) =>
      Math.floor((fixedBytes.get(planeId) as number) / endOffsets(planeId, groupId)),
    );
    for (let count = Math.min(...room); count > 0; count--) {
      if (planes.every((planeId) => (fixedBytes.get(planeId) as number) % (count * element) === 0)) {
        packing.set(groupId, count);
        break;
      }
    }
  }
}
