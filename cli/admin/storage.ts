import { setTimeout as sleep } from "node:timers/promises";
import { UserError } from "../../src/lib/errors.ts";
import { type Column, line, printJson, printList, printRecord } from "../print.ts";
import { type Progress, showProgress } from "../progress.ts";
import type { CommandContext } from "./command-context.ts";

const LOOK_AGAIN_MS = 300;
const PATH = "/api/v1/admin/storage/migration";

type Finding = { check: string; ok: boolean; detail: string };

const COLUMNS: Column<Finding>[] = [
  ["", (finding) => (finding.ok ? "ok" : "FAULT")],
  ["CHECK", (finding) => finding.check],
  ["FOUND", (finding) => finding.detail],
];

/** Exits with 1 on a fault. */
export async function check({ admin, json }: CommandContext): Promise<void> {
  const found = await admin.call<{ ok: boolean; kind: string; findings: Finding[] }>(
    "POST",
    "/api/v1/admin/storage/check",
  );
  if (json) printJson(found);
  else {
    printList(found.findings, COLUMNS, false);
    line(found.ok ? "\nAll is well." : "\nThere are faults.");
  }
  if (!found.ok) process.exitCode = 1;
}

type Amount = { objects: number; bytes: number };
type Migration = {
  active: string;
  configured: string;
  phase: "settled" | "copying" | "verifying" | "switching" | "draining" | "cleaning";
  to: string | null;
  paused: boolean;
  running: boolean;
  total: Amount | null;
  done: Amount;
  copied: Amount;
  verified: number;
  mended: number;
  waiting_for: { uploads: number; jobs: number; batches: number };
  old_copies: string | null;
  error: string | null;
};
type Estimate = Amount & { to: string; objects_there: number; bytes_there: number };
type Wishes = { to: string; quick?: boolean; dryRun?: boolean; removeOld?: boolean };

/** To its end, or as far as it can come now; what it has done stays done, however this command ends. */
export async function migrate({ admin, json, options }: CommandContext<Wishes>): Promise<void> {
  const { to, quick = false, dryRun = false } = options;
  if (to !== "local" && to !== "s3") throw new UserError(`--to ${to} is no storage; say local or s3.`, 2);
  if (dryRun) {
    const found = await admin.call<Estimate>("POST", PATH, { to, dry_run: true });
    if (json) return printJson(found);
    const { objects, bytes, objects_there, bytes_there } = found;
    const all = `${objects} objects (${amountOf(bytes)})`;
    return line(`There are ${all}; ${objects_there} of them (${amountOf(bytes_there)}) lie in ${to} storage already.`);
  }
  const ask = () => admin.call<Migration>("POST", PATH, { to, quick });
  let state = await follow(admin, await ask(), ask);
  if (options.removeOld && state.phase === "settled" && state.old_copies) state = await cleaned(admin);
  if (json) return printJson(state);
  line(outcomeOf(state));
}

export async function status({ admin, json }: CommandContext): Promise<void> {
  const state = await admin.call<Migration>("GET", PATH);
  if (json) return printJson(state);
  const { active, configured, phase, to, paused, copied, verified, mended, waiting_for, old_copies, error } = state;
  printRecord(
    {
      ...{ active, configured, phase: paused ? `${phase}, paused` : phase, to, old_copies },
      ...{ progress: shareOf(state), copied: `${copied.objects} (${amountOf(copied.bytes)})`, verified, mended },
      ...{ waiting_for: told(waiting_for), error },
    },
    false,
  );
}

export async function pause({ admin, json }: CommandContext): Promise<void> {
  const state = await admin.call<Migration>("POST", `${PATH}/pause`);
  if (json) return printJson(state);
  line("The migration is held; the same migrate command goes on with it.");
}

export async function cancel({ admin, json }: CommandContext): Promise<void> {
  const state = await admin.call<Migration>("POST", `${PATH}/cancel`);
  if (json) return printJson(state);
  line(`Objects stay in ${state.active} storage. What was copied is removed by: vodbox admin storage clean`);
}

export async function clean({ admin, json }: CommandContext): Promise<void> {
  const state = await cleaned(admin);
  if (json) return printJson(state);
  line(`Objects lie in ${state.active} storage alone.`);
}

async function cleaned(admin: CommandContext["admin"]): Promise<Migration> {
  const ask = () => admin.call<Migration>("DELETE", `${PATH}/old_copies`);
  return follow(admin, await ask(), ask);
}

/** Shows how far it is until there is nothing more to do now. */
async function follow(
  admin: CommandContext["admin"],
  first: Migration,
  ask: () => Promise<Migration>,
): Promise<Migration> {
  let phase = "";
  let progress: Progress | null = null;
  let state = first;
  while (state.phase !== "settled") {
    if (state.error && !state.running) throw new UserError(`${state.error} Nothing is lost; the same command goes on.`);
    if (state.paused) return state;
    const { uploads, jobs, batches } = state.waiting_for;
    if (state.phase === "draining" && uploads + jobs + batches > 0) break;
    if (phase !== state.phase || progress === null) {
      progress?.done();
      phase = state.phase;
      progress = showProgress(phase);
    }
    progress.update(shareOf(state) ?? 0, state.total ? amountOf(state.done.bytes) : "");
    await sleep(LOOK_AGAIN_MS);
    const next = await admin.call<Migration>("GET", PATH);
    // Without a server nobody else goes on with it.
    state = next.phase === "settled" || next.running || next.paused || next.error ? next : await ask();
  }
  progress?.done();
  return state;
}

function outcomeOf({ active, configured, phase, to, paused, copied, verified, mended, ...state }: Migration): string {
  if (paused) return `The migration to ${to} is held; the same command goes on with it.`;
  const done = `${copied.objects} objects were copied, ${verified} compared byte by byte${mended ? `, ${mended} mended` : ""}.`;
  if (phase !== "settled") {
    return `${done} New objects go to ${active} storage. What began before (${told(state.waiting_for)}) ends in the old one; the server carries it over and ends the migration then.`;
  }
  const advice = configured === active ? "" : ` Set VODBOX_STORAGE=${active} for the next start.`;
  const old = state.old_copies ? ` Old copies are removed by: vodbox admin storage clean` : "";
  return `Objects lie in ${active} storage. ${done}${advice}${old}`;
}

const told = ({ uploads, jobs, batches }: Migration["waiting_for"]) =>
  `${uploads} uploads, ${jobs} jobs, ${batches} ingest batches`;

const shareOf = ({ done, total }: Migration): number | null =>
  total === null ? null : total.bytes === 0 ? 1 : Math.min(1, done.bytes / total.bytes);

const amountOf = (bytes: number) => (bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(1)} GB`);
