import type { Command } from "commander";
import type { Checkup } from "#build/client/methods.ts";
import { type Finding, runCheck } from "#features/operations/doctor/finding.ts";
import { checkOffline } from "#features/operations/doctor/offline.ts";
import { sleep, UserError } from "#lib/base";
import { embeddedMigrations } from "#lib/executable";
import type { Config } from "#platform/config/load.ts";
import { integrityOf } from "#storage/db/integrity.ts";
import { isLocked } from "#storage/db/lock.ts";
import { type Admin, connect, serverOfEnvironment } from "../connect.ts";
import { type Column, line, printJson, printList, state } from "../print.ts";
import { showProgress } from "../progress.ts";
import { settingsOf, wantsJson } from "../settings.ts";

const PATH = "/api/v1/admin/doctor/checkup";
const LOOK_AGAIN_MS = 200;
const MAX_SKEW_MS = 60_000;

const COLUMNS: Column<Finding>[] = [
  ["", (finding) => state(verdictOf(finding))],
  ["CHECK", (finding) => finding.check],
  ["FOUND", (finding) => finding.detail],
];

/**
 * Exits with 1 on a remaining fault. A data directory without a server is inspected before it is opened, because
 * opening would migrate it, or create a directory with a mistyped name.
 */
export async function doctor(command: Command): Promise<void> {
  const config = settingsOf(command);
  const options = command.opts<{ fix?: boolean; force?: boolean; server?: string }>();
  const { fix = false, force = false, server = serverOfEnvironment() } = options;
  if (force && !fix) throw new UserError("--force requires --fix.", 2);
  if (fix && options.server !== undefined)
    throw new UserError("--fix works on the data directory of this machine; run it where the server runs.", 2);
  const isRemote = server !== undefined && !fix;
  const { findings, isEnough } =
    isRemote || isLocked(config.data_dir)
      ? { findings: [], isEnough: false }
      : await checkOffline(config, embeddedMigrations());
  // An older database is migrated by --fix, as by a start.
  const isOver = isEnough && !(fix && findings.every((finding) => finding.ok));
  const rest = isOver ? [] : await requestCheckup(config, { fix, force, ...(isRemote && { server }) });
  const isChecked = findings.some(({ check }) => check === "integrity");
  const all = isOver ? findings : [...rest, ...findings.filter(({ check }) => check === "integrity")];
  // In this process and read-only: the check reads the whole file and would block the server for as long.
  if (!isOver && !isChecked && !isRemote)
    all.push(await runCheck("integrity", async () => integrityOf(config.database_url, config.data_dir)));
  const ok = all.every((finding) => finding.ok);
  const fixed = all.reduce((sum, finding) => sum + finding.fixed, 0);
  if (wantsJson(command)) printJson({ ok, fix, fixed, findings: all });
  else {
    printList(all, COLUMNS, false);
    const well = isOver
      ? "All performed checks passed."
      : fixed > 0
        ? "All checks passed after the fixes."
        : "All checks passed.";
    const warned = all.some(({ warning }) => warning) ? "There are warnings, but no faults." : well;
    line(`\n${ok ? warned : "Faults found."}`);
  }
  if (!ok) process.exitCode = 1;
}

function verdictOf({ ok, fixed, warning }: Finding): string {
  if (!ok) return "FAULT";
  if (warning) return "warning";
  return fixed > 0 ? "fixed" : "ok";
}

/** The server's finding, or that of the same API in this process. */
async function requestCheckup(
  config: Config,
  wish: { fix: boolean; force: boolean; server?: string },
): Promise<Finding[]> {
  const admin = await connect(config, { server: wish.server, isLocal: wish.fix });
  try {
    const sentAt = Date.now();
    const first = await admin.call<Checkup>("POST", PATH, { fix: wish.fix, ...(wish.force && { force: true }) });
    const clock = comparedClocks(first.server_time, sentAt, Date.now());
    return [...(await toItsEnd(admin, first)).findings, clock];
  } finally {
    await admin.close();
  }
}

/** Shows the current stage; objects are counted, because their total is not known in advance. */
async function toItsEnd(admin: Admin, first: Checkup): Promise<Checkup> {
  let state = first;
  if (state.status !== "running") return state;
  const progress = showProgress("doctor", { silentMs: 5000 });
  try {
    while (state.status === "running") {
      await sleep(LOOK_AGAIN_MS);
      state = await admin.call<Checkup>("GET", PATH);
      progress.update(SHARE[state.stage] ?? 0.1, `${state.stage}${state.objects > 0 ? `: ${state.objects}` : ""}`);
    }
  } catch (error) {
    progress.done(false);
    if (!(error instanceof UserError)) throw error;
    throw new UserError(`${error.message} The check may still be running; run it again.`);
  }
  progress.done();
  return state;
}

/** Approximate share of a check-up that is complete at the start of a stage. */
const SHARE: Record<string, number> = {
  ffmpeg: 0.05,
  "referenced objects": 0.2,
  "objects in storage": 0.4,
  "missing objects": 0.9,
  "unreferenced objects": 0.95,
};

/** Compares the server's clock with this command's: the response was created in between. */
function comparedClocks(serverTime: string, sentAt: number, receivedAt: number): Finding {
  const serverMs = Date.parse(serverTime);
  const skew = serverMs < sentAt ? serverMs - sentAt : Math.max(0, serverMs - receivedAt);
  const seconds = Math.round(Math.abs(skew) / 1000);
  const comparison = `the server's clock ${seconds === 0 ? "agrees with this command's" : `is ${seconds} s ${skew < 0 ? "behind" : "ahead of"} this command's`}`;
  const ok = Math.abs(skew) <= MAX_SKEW_MS;
  return { check: "server clock", ok, detail: ok ? comparison : `${comparison}; synchronize both with NTP`, fixed: 0 };
}
