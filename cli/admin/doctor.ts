import { execFile } from "node:child_process";
import { statfs } from "node:fs/promises";
import { promisify } from "node:util";
import { cacheDir } from "../../src/lib/cache-dir.ts";
import { resolveBinaries } from "../../src/media/binaries.ts";
import { integrityOf } from "../../storage/db/integrity.ts";
import { type Column, line, printJson, printList } from "../print.ts";
import { settingsOf } from "../settings.ts";
import type { Ask } from "./ask.ts";

type Finding = { check: string; ok: boolean; detail: string };
const run = promisify(execFile);
/** Without these there is no transcoding. */
const NEEDED = ["libx264", "aac", "mjpeg"];

const COLUMNS: Column<Finding>[] = [
  ["", (finding) => (finding.ok ? "ok" : "FAULT")],
  ["CHECK", (finding) => finding.check],
  ["FOUND", (finding) => finding.detail],
];

/** Exits with 1 on a fault. */
export async function doctor({ admin, json, command }: Ask): Promise<void> {
  const config = settingsOf(command);
  const { findings } = await admin.call<{ findings: Finding[] }>("GET", "/api/v1/admin/doctor");
  const all = [
    ...findings,
    // In this process and read-only: the check reads the whole file and would hold up the server for as long.
    await attempt("integrity", async () => integrityOf(config.database_url, config.data_dir)),
    await attempt("ffmpeg", () => checkFfmpeg(config)),
    await attempt("disk", () => checkDisk(config)),
  ];
  const ok = all.every((finding) => finding.ok);
  if (json) printJson({ ok, findings: all });
  else {
    printList(all, COLUMNS, false);
    line(ok ? "\nAll is well." : "\nThere are faults.");
  }
  if (!ok) process.exitCode = 1;
}

async function attempt(check: string, look: () => Promise<string>): Promise<Finding> {
  try {
    return { check, ok: true, detail: await look() };
  } catch (error) {
    return { check, ok: false, detail: (error as Error).message };
  }
}

async function checkFfmpeg(config: { ffmpeg?: string | undefined; ffprobe?: string | undefined }): Promise<string> {
  const found = await resolveBinaries({ ffmpeg: config.ffmpeg, ffprobe: config.ffprobe, cacheDir: cacheDir() });
  const { stdout } = await run(found.ffmpeg, ["-hide_banner", "-encoders"]);
  const lacking = NEEDED.filter((encoder) => !new RegExp(`\\b${encoder}\\b`).test(stdout));
  if (lacking.length > 0)
    throw new Error(`${found.ffmpeg} has no encoder ${lacking.join(", ")}; use the bundled one or another build`);
  await run(found.ffprobe, ["-version"]);
  return `${found.ffmpeg} (${found.origin})`;
}

async function checkDisk({ data_dir, min_free_bytes }: { data_dir: string; min_free_bytes: number }): Promise<string> {
  const { bavail, bsize } = await statfs(data_dir);
  const free = `${((bavail * bsize) / 1e9).toFixed(1)} GB`;
  if (bavail * bsize >= min_free_bytes) return `${free} free`;
  throw new Error(`only ${free} free, less than VODBOX_MIN_FREE_BYTES: uploads are refused; free some space`);
}
