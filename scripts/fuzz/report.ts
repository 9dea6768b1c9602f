import type { ParserReport } from "./fuzz-parsers.ts";
import type { RouteReport } from "./fuzz-routes.ts";

/** A stall of the event loop that is acceptable, in ms. */
const MAX_STALL_MS = 250;
/** The server warms up in the first rounds; after that its memory may vary by this much, in MiB. */
const MAX_GROWTH_MEBIBYTES = 96;

export type Figure = { name: string; value: number; unit: string; bar: string; met: boolean };

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

/** How much more memory the last third of the rounds used than the middle one, in MiB. */
export function growth(memory: readonly number[]): number {
  const third = Math.floor(memory.length / 3);
  return third === 0 ? 0 : median(memory.slice(-third)) - median(memory.slice(third, 2 * third));
}

export function figuresOf(routes: RouteReport, parsers: ParserReport): Figure[] {
  const serverErrors = Object.entries(routes.statuses).reduce(
    (sum, [status, count]) => sum + (Number(status) >= 500 ? count : 0),
    0,
  );
  const grown = growth(routes.memory);
  const plain = { bar: "", met: true };
  return [
    { name: "requests", value: routes.requests, unit: "", ...plain },
    { name: "requests a second", value: routes.requests / routes.seconds, unit: "/s", ...plain },
    { name: "answers of 502 and 503 for what is not set up", value: serverErrors, unit: "", ...plain },
    { name: "faults", value: routes.failures.length, unit: "", bar: "0", met: routes.failures.length === 0 },
    {
      name: "longest stall",
      value: routes.longestStallMs,
      unit: "ms",
      bar: `≤ ${MAX_STALL_MS}`,
      met: routes.longestStallMs <= MAX_STALL_MS,
    },
    { name: "longest wait of another request", value: routes.longestWaitMs, unit: "ms", ...plain },
    {
      name: "growth of memory",
      value: grown,
      unit: "MiB",
      bar: `≤ ${MAX_GROWTH_MEBIBYTES}`,
      met: grown <= MAX_GROWTH_MEBIBYTES,
    },
    { name: "memory at the end", value: routes.memory.at(-1) ?? 0, unit: "MiB", ...plain },
    { name: "documents parsed", value: parsers.documents, unit: "", ...plain },
    { name: "slowest document", value: parsers.slowestMs, unit: "ms", ...plain },
    {
      name: "faults of parsers",
      value: parsers.failures.length,
      unit: "",
      bar: "0",
      met: parsers.failures.length === 0,
    },
  ];
}

export function tableOf(figures: readonly Figure[]): string {
  const rows = figures.map(({ name, value, unit, bar, met }) => {
    const shown = Number.isInteger(value) ? String(value) : value.toFixed(1);
    return [name, `${shown} ${unit}`.trim(), bar, bar === "" ? "" : met ? "met" : "MISSED"];
  });
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((row) => (row[column] as string).length)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}
