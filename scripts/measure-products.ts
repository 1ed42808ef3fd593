/**
 * Times every kernel that can multiply few rows on this machine's card, over the products of common models,
 * and writes the table from which the library chooses. Run on the card: `scripts/tune-products [file]`;
 * commit what it writes.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { openCard } from "../bench/support/card";
import { type Device, dtypes } from "../ffi/device";
import { medianNs } from "../test/gpu/support/timing";
import { Buffers } from "../test/kernels/support/buffers";
import { setCEnvironment } from "../test/kernels/support/open-device";
import { Random } from "../test/kernels/support/random";

interface Shape {
  readonly outColumns: number;
  readonly inColumns: number;
  readonly isGated?: boolean;
  readonly isOutFloat?: boolean;
}

const root = join(import.meta.dir, "..");
/** As the library has them. */
const rowBuckets = [1, 2, 4, 8, 16, 32, 64];
const kernels = ["L", "N", "W"] as const;
/** Weights rotate beyond what the L2 cache holds. */
const rotationBytes = 256 * 2 ** 20;

const shapes: readonly Shape[] = [
  // 8B, hidden 4096
  { outColumns: 6144, inColumns: 4096 },
  { outColumns: 4096, inColumns: 4096 },
  { outColumns: 24_576, inColumns: 4096, isGated: true },
  { outColumns: 28_672, inColumns: 4096, isGated: true },
  { outColumns: 4096, inColumns: 12_288 },
  { outColumns: 4096, inColumns: 14_336 },
  { outColumns: 151_936, inColumns: 4096, isOutFloat: true },
  { outColumns: 128_256, inColumns: 4096, isOutFloat: true },
  // 4B and 1.7B, hidden 2560 and 2048; 30B-A3B's attention
  { outColumns: 6144, inColumns: 2560 },
  { outColumns: 2560, inColumns: 4096 },
  { outColumns: 19_456, inColumns: 2560, isGated: true },
  { outColumns: 2560, inColumns: 9728 },
  { outColumns: 151_936, inColumns: 2560, isOutFloat: true },
  { outColumns: 5120, inColumns: 2048 },
  { outColumns: 4096, inColumns: 2048 },
  { outColumns: 2048, inColumns: 4096 },
  { outColumns: 2048, inColumns: 2048 },
  { outColumns: 12_288, inColumns: 2048, isGated: true },
  { outColumns: 2048, inColumns: 6144 },
  { outColumns: 151_936, inColumns: 2048, isOutFloat: true },
];

function weights(device: Device, buffers: Buffers, { outColumns, inColumns }: Shape) {
  const bytes = outColumns * inColumns * 2;
  const rotations = Math.max(1, Math.ceil(rotationBytes / bytes));
  const prepared = buffers.allocate(bytes * rotations);
  const rows = outColumns * rotations;
  const place = { prepared, sourceStride: inColumns, rows, columns: inColumns, totalRows: rows };
  device.synthesize({ ...place, dtype: dtypes.bfloat16, scale: 1, a: 1, b: 2 });
  return { at: (index: number) => prepared + (index % rotations) * bytes, rotations };
}

/** Median nanoseconds by number of rows. */
function timeShape(device: Device, shape: Shape): number[] {
  const { outColumns, inColumns, isGated, isOutFloat } = shape;
  const buffers = new Buffers(device);
  const maxRows = Math.max(...rowBuckets);
  const weight = weights(device, buffers, shape);
  const x = buffers.putFloats(new Random(5).normals(maxRows * inColumns), "bfloat16");
  const out = buffers.allocate(maxRows * outColumns * 4);
  const shared = { x, xStride: inColumns, inColumns, dtype: dtypes.bfloat16, weightDtype: dtypes.bfloat16 };
  const columns = outColumns / 2;
  const op = isGated
    ? device.op("gatedLinear", {
        ...shared,
        gateUp: buffers.allocate(maxRows * outColumns * 2),
        gateUpStride: outColumns,
        out,
        outStride: columns,
        columns,
      })
    : device.op("linear", {
        ...shared,
        out,
        outStride: outColumns,
        outColumns,
        outDtype: isOutFloat ? dtypes.float32 : dtypes.bfloat16,
      });
  const times = rowBuckets.map((rows) => {
    op.set("rows", rows);
    return medianNs(device, Math.max(weight.rotations, 4), (index) =>
      op.set("weight", weight.at(index)).launch(),
    );
  });
  buffers.release();
  return times;
}

function timeKernel(kernel: string): { readonly cardName: string; readonly times: number[][] } {
  setCEnvironment("GRANARY_PRODUCTS", kernel);
  const device = openCard();
  const times = shapes.map((shape) => timeShape(device, shape));
  const { name } = device.info();
  device.close();
  return { cardName: name, times };
}

const runs = kernels.map(timeKernel);
const cardName = runs[0]?.cardName ?? "";
const entries = shapes.map((shape, index) => {
  const { outColumns, inColumns, isGated = false } = shape;
  const choices = rowBuckets.map((rows, bucket) => {
    const times = runs.map(({ times }) => times[index]?.[bucket] ?? Number.POSITIVE_INFINITY);
    const best = times.indexOf(Math.min(...times));
    const rates = times.map((ns, kernel) => {
      const rate = (outColumns * inColumns * 2) / ns / 1000;
      return `${kernels[kernel]} ${(ns / 1000).toFixed(1).padStart(6)} us ${rate.toFixed(2)} TB/s`;
    });
    const name = `${outColumns}x${inColumns}${isGated ? " gated" : ""}`;
    console.log(`${name.padEnd(18)} M=${String(rows).padEnd(2)}  ${rates.join("  ")}  -> ${kernels[best]}`);
    return kernels[best];
  });
  return `    {${outColumns}, ${inColumns}, ${isGated}, "${choices.join("")}"},`;
});

const symbol = cardName.replaceAll(/\W/g, "");
const file = process.argv[2] ?? join(root, `cuda/kernels/product-table-${symbol.toLowerCase()}.h`);
writeFileSync(
  file,
  `// Choices measured on an ${cardName}. Written by scripts/tune-products; not edited by hand.
#pragma once
#include "product-table.h"

namespace granary {

constexpr ProductEntry k${symbol}Products[] = {
${entries.join("\n")}
};

}  // namespace granary
`,
);
console.log(file);
