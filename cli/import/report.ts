import { rename, writeFile } from "node:fs/promises";
import { escapeCell } from "#features/assets/csv-cells.ts";
import { line, plain, printJson } from "../print.ts";
import type { Entry, Ledger } from "./ledger.ts";

export type Failure = { source_id: string; title: string; asset_id: number | null; reason: string };
export type Report = {
  provider: string;
  videos: number;
  imported: number;
  /** By earlier runs. */
  unchanged: number;
  failed: number;
  /** Imported, but not encoded yet: a later run verifies them. */
  unverified: number;
  failures: Failure[];
  /** What was imported otherwise than it was. */
  notes: Failure[];
  duplicates: string[];
  /** Why not all videos were listed. */
  error: string | null;
  csv: string;
};

/** Lines of a list in the text form; all of them are in the JSON form. */
const MAX_LINES = 100;

/** What the entries of a run say, `touched` being those that it worked on. */
export function reportOf(
  ledger: Ledger,
  touched: ReadonlySet<string>,
  given: Pick<Report, "provider" | "videos" | "unchanged" | "duplicates" | "error" | "csv">,
): Report {
  const failures: Failure[] = [];
  const notes: Failure[] = [];
  let failed = 0;
  let imported = 0;
  let unverified = 0;
  for (const entry of ledger.entries()) {
    if (!touched.has(entry.id)) continue;
    const line = (reason: string): Failure => ({
      source_id: entry.id,
      title: entry.title ?? "",
      asset_id: entry.stage === undefined ? null : (entry.assetId ?? null),
      reason,
    });
    if (entry.problems?.length) failed++;
    else if (entry.stage === "attached" || entry.stage === "verified") imported++;
    if (entry.stage === "attached" && !entry.problems?.length) unverified++;
    failures.push(...(entry.problems ?? []).map(line));
    notes.push(...(entry.notes ?? []).map(line));
  }
  return { ...given, imported, failed, unverified, failures, notes };
}

export function printReport(report: Report, json: boolean): void {
  if (json) return printJson(report);
  const list = (title: string, lines: readonly Failure[]) => {
    if (lines.length > 0) line(`${title}:`);
    for (const { source_id, title: name, reason } of lines.slice(0, MAX_LINES))
      line(`  ${plain(source_id)} (${plain(name)}): ${plain(reason)}`);
    if (lines.length > MAX_LINES) line(`  … and ${lines.length - MAX_LINES} more`);
  };
  list("Imported otherwise", report.notes);
  list("Not imported, or not completely", report.failures);
  if (report.duplicates.length > 0) line(`${report.duplicates.length} videos were listed more than once.`);
  const { imported, unchanged, failed, unverified, videos } = report;
  if (unverified > 0) line(`${unverified} are not encoded yet; run the same command later to verify them.`);
  line(
    `${imported} imported, ${unchanged} unchanged, ${failed} with problems, of ${videos} videos; ids in ${report.csv}`,
  );
}

const COLUMNS = ["source_id", "asset_id", "external_id", "title", "watch_url", "stage"] as const;

/** Writes the CSV of old to new ids: of all videos that have an asset, by whichever run. Returns how many. */
export async function writeCsv(path: string, entries: Iterable<Entry>, base: string): Promise<number> {
  const { stringify } = await import("csv-stringify/sync");
  const parts: string[] = [stringify([COLUMNS])];
  for (const entry of entries) {
    if (entry.assetId === undefined || entry.stage === undefined) continue;
    const url = `${base}/watch/${entry.externalId}`;
    const cells = [entry.id, String(entry.assetId), entry.externalId ?? "", entry.title ?? "", url, entry.stage];
    parts.push(stringify([cells.map(escapeCell)]));
  }
  await replace(path, parts.join(""));
  return parts.length - 1;
}

/** A reader sees the old file, or the whole new one. */
export async function replace(path: string, content: string): Promise<void> {
  await writeFile(`${path}.part`, content);
  await rename(`${path}.part`, path);
}
