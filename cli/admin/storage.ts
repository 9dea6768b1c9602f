import type { StorageMigration as Migration } from "#build/client/methods.ts";
import type { Result } from "#clients/typescript/types.ts";
import { alternatives, sleep, UserError } from "#lib/base";
import { STORE_KINDS } from "#model/enums.ts";
import { type Column, line, printJson, printList, printRecord, state } from "../print.ts";
import { type Progress, showProgress } from "../progress.ts";
import { amount } from "../units.ts";
import type { CommandContext } from "./command-context.ts";

const LOOK_AGAIN_MS = 300;
const PATH = "/api/v1/admin/storage/migration";

const COLUMNS: Column<Result<"checkStorage">["findings"][number]>[] = [
  ["", (finding) => state(finding.ok ? "ok" : "FAULT")],
  ["CHECK", (finding) => finding.check],
  ["FOUND", (finding) => finding.detail],
];

/** Exits with 1 on a fault. */
export async function check({ admin, json }: CommandContext): Promise<void> {
  const report = await admin.call<Result<"checkStorage">>("POST", "/api/v1/admin/storage/check");
  if (json) printJson(report);
  else {
    printList(report.findings, COLUMNS, false);
    line(report.ok ? "\nAll checks passed." : "\nFaults found.");
  }
  if (!report.ok) process.exitCode = 1;
}

type Estimate = Extract<Result<"startMigration">, { objects_there: number }>;
type Wishes = { to: string; quick?: boolean; dryRun?: boolean; removeOld?: boolean };

/** Runs the migration to its end, or as far as possible now; completed work is kept, however this command ends. */
export async function migrate({ admin, json, options }: CommandContext<Wishes>): Promise<void> {
  const { to, quick = false, dryRun = false } = options;
  if (!STORE_KINDS.some((kind) => kind === to))
    throw new UserError(`--to ${to} is not a storage; use ${alternatives(STORE_KINDS)}.`, 2);
  if (dryRun) {
    const estimate = await admin.call<Estimate>("POST", PATH, { to, dry_run: true });
    if (json) return printJson(estimate);
    const { objects, bytes, objects_there, bytes_there } = estimate;
    const all = `${objects} objects (${amount(bytes)})`;
    return line(`There are ${all}; ${objects_there} of them (${amount(bytes_there)}) are already in ${to} storage.`);
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
  const { active, configured, phase, to, paused, copied, verified, fixed, waiting_for, old_copies, error } = state;
  printRecord(
    {
      active,
      configured,
      phase: paused ? `${phase}, paused` : phase,
      to,
      old_copies,
      progress: shareOf(state),
      copied: `${copied.objects} (${amount(copied.bytes)})`,
      verified,
      fixed,
      waiting_for: waitingText(waiting_for),
      error,
    },
    false,
  );
}

export async function pause({ admin, json }: CommandContext): Promise<void> {
  const state = await admin.call<Migration>("POST", `${PATH}/pause`);
  if (json) return printJson(state);
  line("The migration is paused; run the same migrate command to resume.");
}

export async function cancel({ admin, json }: CommandContext): Promise<void> {
  const state = await admin.call<Migration>("POST", `${PATH}/cancel`);
  if (json) return printJson(state);
  line(`Objects remain in ${state.active} storage. To delete the copies: vodbox admin storage clean`);
}

export async function clean({ admin, json }: CommandContext): Promise<void> {
  const state = await cleaned(admin);
  if (json) return printJson(state);
  line(`Objects are only in ${state.active} storage.`);
}

async function cleaned(admin: CommandContext["admin"]): Promise<Migration> {
  const ask = () => admin.call<Migration>("DELETE", `${PATH}/old_copies`);
  return follow(admin, await ask(), ask);
}

/** Shows the progress until there is nothing more to do now. */
async function follow(
  admin: CommandContext["admin"],
  first: Migration,
  ask: () => Promise<Migration>,
): Promise<Migration> {
  let phase = "";
  let progress: Progress | null = null;
  let state = first;
  while (state.phase !== "settled") {
    if (state.error && !state.running)
      throw new UserError(`${state.error} Nothing is lost; run the same command to resume.`);
    if (state.paused) return state;
    const { uploads, jobs, batches } = state.waiting_for;
    if (state.phase === "draining" && uploads + jobs + batches > 0) break;
    if (phase !== state.phase || progress === null) {
      progress?.done();
      phase = state.phase;
      progress = showProgress(phase);
    }
    progress.update(shareOf(state) ?? 0, state.total ? amount(state.done.bytes) : "");
    await sleep(LOOK_AGAIN_MS);
    const next = await admin.call<Migration>("GET", PATH);
    // Without a server, no other process continues it.
    state = next.phase === "settled" || next.running || next.paused || next.error ? next : await ask();
  }
  progress?.done();
  return state;
}

function outcomeOf({ active, configured, phase, to, paused, copied, verified, fixed, ...state }: Migration): string {
  if (paused) return `The migration to ${to} is paused; run the same command to resume.`;
  const done = `${copied.objects} objects copied, ${verified} verified byte by byte${fixed ? `, ${fixed} fixed` : ""}.`;
  if (phase !== "settled") {
    return `${done} New objects go to ${active} storage. Work started before (${waitingText(state.waiting_for)}) completes in the old storage; the server then copies it and completes the migration.`;
  }
  const advice = configured === active ? "" : ` Set VODBOX_STORAGE=${active} for the next start.`;
  const old = state.old_copies ? ` To delete the old copies: vodbox admin storage clean` : "";
  return `Objects are in ${active} storage. ${done}${advice}${old}`;
}

const waitingText = ({ uploads, jobs, batches }: Migration["waiting_for"]) =>
  `${uploads} uploads, ${jobs} jobs, ${batches} batch uploads`;

const shareOf = ({ done, total }: Migration): number | null =>
  total === null ? null : total.bytes === 0 ? 1 : Math.min(1, done.bytes / total.bytes);
