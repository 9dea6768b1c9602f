import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import type { Config } from "../../src/config/load.ts";
import { embeddedMigrations } from "../../src/lib/embedded.ts";
import { UserError } from "../../src/lib/errors.ts";
import { type Finding, runCheck } from "../../src/resources/operator/doctor/finding.ts";
import { checkOffline } from "../../src/resources/operator/doctor/offline.ts";
import { integrityOf } from "../../storage/db/integrity.ts";
import { isLocked } from "../../storage/db/lock.ts";
import { type Admin, connect } from "../connect.ts";
import { type Column, line, printJson, printList } from "../print.ts";
import { showProgress } from "../progress.ts";
import { settingsOf, wantsJson } from "../settings.ts";

type Checkup = {
  status: "running" | "done" | "failed";
  stage: string;
  objects: number;
  findings: Finding[];
  server_time: string;
};

const PATH = "/api/v1/admin/doctor/checkup";
const LOOK_AGAIN_MS = 200;
const MAX_SKEW_MS = 60_000;

const COLUMNS: Column<Finding>[] = [
  ["", verdictOf],
  ["CHECK", (finding) => finding.check],
  ["FOUND", (finding) => finding.detail],
];

/**
 * Exits with 1 on a fault that is left. What no server holds is looked at before it is opened, which would migrate it, or
 * make a new directory of a name that was mistyped.
 */
export async function doctor(command: Command): Promise<void> {
  const config = settingsOf(command);
  const { fix = false, force = false } = command.opts<{ fix?: boolean; force?: boolean }>();
  if (force && !fix) throw new UserError("--force is for doctor --fix.", 2);
  const { findings, isEnough } = isLocked(config.data_dir)
    ? { findings: [], isEnough: false }
    : await checkOffline(config, embeddedMigrations());
  // What is older is migrated by a --fix, as by a start.
  const isOver = isEnough && !(fix && findings.every((finding) => finding.ok));
  const rest = isOver ? [] : await asked(config, { fix, force });
  const isChecked = findings.some(({ check }) => check === "integrity");
  const all = isOver ? findings : [...rest, ...findings.filter(({ check }) => check === "integrity")];
  // In this process and read-only: the check reads the whole file and would hold up the server for as long.
  if (!isOver && !isChecked)
    all.push(await runCheck("integrity", async () => integrityOf(config.database_url, config.data_dir)));
  const ok = all.every((finding) => finding.ok);
  const mended = all.reduce((sum, finding) => sum + finding.mended, 0);
  if (wantsJson(command)) printJson({ ok, fix, mended, findings: all });
  else {
    printList(all, COLUMNS, false);
    const well = isOver ? "All that was looked at is well." : mended > 0 ? "All is well now." : "All is well.";
    const warned = all.some(({ warning }) => warning) ? "There are warnings, and no faults." : well;
    line(`\n${ok ? warned : "There are faults."}`);
  }
  if (!ok) process.exitCode = 1;
}

function verdictOf({ ok, mended, warning }: Finding): string {
  if (!ok) return "FAULT";
  if (warning) return "warning";
  return mended > 0 ? "mended" : "ok";
}

/** Of the server, or of the same interface in this process. */
async function asked(config: Config, wish: { fix: boolean; force: boolean }): Promise<Finding[]> {
  const admin = await connect(config);
  try {
    const begun = Date.now();
    const first = await admin.call<Checkup>("POST", PATH, { fix: wish.fix, ...(wish.force && { force: true }) });
    const clock = comparedClocks(first.server_time, begun, Date.now());
    return [...(await toItsEnd(admin, first)).findings, clock];
  } finally {
    await admin.close();
  }
}

/** Shows what it is at; objects are counted, for nobody knows before how many there are. */
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
    throw new UserError(`${error.message} The check-up may not be over; run it again.`);
  }
  progress.done();
  return state;
}

/** How much of a check-up lies behind who is at a stage, about. */
const SHARE: Record<string, number> = {
  ffmpeg: 0.05,
  "what the database names": 0.2,
  "objects in storage": 0.4,
  "missing objects": 0.9,
  "unreferenced objects": 0.95,
};

/** The server's clock against this command's: the answer was given in between. */
function comparedClocks(serverTime: string, asked: number, answered: number): Finding {
  const theirs = Date.parse(serverTime);
  const skew = theirs < asked ? theirs - asked : Math.max(0, theirs - answered);
  const seconds = Math.round(Math.abs(skew) / 1000);
  const told = `the server's clock ${seconds === 0 ? "agrees with this command's" : `is ${seconds} s ${skew < 0 ? "behind" : "ahead of"} this command's`}`;
  const ok = Math.abs(skew) <= MAX_SKEW_MS;
  return { check: "server clock", ok, detail: ok ? told : `${told}; set both by NTP`, mended: 0 };
}
