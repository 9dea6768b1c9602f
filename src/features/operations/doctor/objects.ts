import { join } from "node:path";
import type { App } from "#app.ts";
import { TRASH } from "#model/object-keys.ts";
import { TRASH_DAYS } from "../migration/trash.ts";
import { collectReferences } from "./collect-references.ts";
import { examineJoinedMedia } from "./damaged.ts";
import { type Finding, runCheck } from "./finding.ts";
import { adviceOn, type FixResult, fixLoss, type Removed, removeUnreferenced } from "./fix.ts";
import { ReferenceIndex } from "./reference-index.ts";
import { findLosses, type Loss, type ScanResult, scanStorage, YOUNG_MS } from "./scan-storage.ts";

const SHOWN = 5;
const HOURS = YOUNG_MS / 3_600_000;

type Options = {
  fix: boolean;
  /** Remove unreferenced objects even when they are the majority. */
  force: boolean;
  signal: AbortSignal;
  /** The stage in progress, and the number of objects it has processed. */
  tell(stage: string, objects: number): void;
};

/**
 * Compares database and storage in both directions: objects that rows reference and that are missing, and objects
 * without a reference. With `fix`, corrects what can be corrected. Memory does not grow with either; the working data
 * are two files in the data directory.
 */
export async function compareObjects(app: App, { fix, force, signal, tell }: Options): Promise<Finding[]> {
  const { objects } = app;
  if (!objects) return [];
  const index = await ReferenceIndex.open(join(app.config.data_dir, "doctor.notes"));
  try {
    tell("referenced objects", 0);
    await collectReferences(app, index, signal);
    const seen = await scanStorage(app, objects, index, {
      signal,
      tell: (scanned) => tell("objects in storage", scanned),
    });
    const missing = await runCheck("missing", async () => {
      const counts = new Losses();
      for await (const loss of findLosses(app, objects, index, signal)) {
        const isFixed = fix && !isOnlyBeingMade(loss);
        counts.add(loss, isFixed ? await fixLoss(app, objects, loss) : [], fix ? null : await adviceOn(app, loss));
        tell("missing objects", counts.missing);
      }
      return counts.finding(index.required(), fix);
    });
    tell("joined media", 0);
    const damaged = await runCheck("damaged", examineJoinedMedia(app, objects, { fix, signal }));
    const unreferenced = await runCheck("unreferenced", async () => {
      const file = join(app.config.data_dir, "doctor.again");
      const report = (removed: number) => tell("unreferenced objects", removed);
      const unnamed = index.left();
      if (fix && !force && unnamed.objects * 2 > seen.objects) return tooMany(unnamed, seen);
      const removed = fix ? await removeUnreferenced(app, index, { objects, file, signal, tell: report }) : null;
      return describeUnreferenced(unnamed, seen, removed);
    });
    return [missing, damaged, unreferenced];
  } finally {
    await index.close();
  }
}

/** A job in progress will produce all of it again. */
const isOnlyBeingMade = ({ isBeingMade, lost }: Loss) =>
  isBeingMade && lost.every(({ kind }) => kind !== "source" && kind !== "subtitle");

const DONE: Record<Extract<FixResult, { done: string }>["done"], string> = {
  remade: "assets are re-encoded from their sources",
  rejoined: "assets are joined again from their parts",
  errored: "assets are errored (media_lost)",
  forgotten: "assets continue with the remaining media",
  failed: "subtitles are failed",
  reopened: "uploads of open batches are pending again",
};

class Losses {
  missing = 0;
  #inProgressCount = 0;
  #fixed = 0;
  readonly #faults: string[] = [];
  #faulty = 0;
  readonly #done = new Map<keyof typeof DONE, number>();

  /** `advice`: what `--fix` would do about it. */
  add(loss: Loss, settled: readonly FixResult[], advice: string | null): void {
    const { asset, lost } = loss;
    if (isOnlyBeingMade(loss)) {
      this.#inProgressCount += lost.length;
      return;
    }
    this.missing += lost.length;
    for (const one of settled) if ("done" in one) this.#done.set(one.done, (this.#done.get(one.done) ?? 0) + 1);
    const left = settled.find((one) => "left" in one);
    const remark = left?.left ?? advice;
    if (settled.length > 0 && !left) {
      this.#fixed += lost.length;
      return;
    }
    const owner = asset === null ? "delivery" : `asset ${asset}`;
    for (const { key, kind } of lost) {
      this.#faulty++;
      if (this.#faults.length < SHOWN)
        this.#faults.push(`${owner}: ${key} (${kind}${remark === null ? "" : `; ${remark}`})`);
    }
  }

  /** Throws Error for remaining faults. */
  finding(named: number, fix: boolean) {
    const done = [...this.#done].map(([kind, count]) => `${count} ${DONE[kind]}`).join(", ");
    const inProgress = this.#inProgressCount > 0 ? `; ${this.#inProgressCount} are being created again` : "";
    if (this.missing === 0)
      return { detail: `${named} objects referenced by the database are in storage${inProgress}`, fixed: 0 };
    const detail = `${this.missing} of ${named} objects referenced by the database are missing from storage`;
    if (this.#faulty === 0) return { detail: `${detail}: ${done}${inProgress}`, fixed: this.#fixed };
    const more = this.#faulty > SHOWN ? " …" : "";
    const advice = fix ? "" : ". Look for them in a backup before doctor --fix removes the references";
    return {
      ok: false,
      detail: `${detail}: ${done ? `${done}; left: ` : ""}${this.#faults.join(", ")}${more}${inProgress}${advice}`,
      fixed: this.#fixed,
    };
  }
}

type Unreferenced = { objects: number; bytes: number };

/** Crashes do not leave that many: this is more likely the wrong database. */
function tooMany(unnamed: Unreferenced, seen: ScanResult) {
  const detail = `${unnamed.objects} of ${seen.objects} objects (${amountOf(unnamed.bytes)}) are unreferenced, more than half of all: nothing was removed, because this may not be the database of these objects (look for a backup); doctor --fix --force moves them to the trash all the same`;
  return { ok: false, detail, fixed: 0 };
}

function describeUnreferenced(unnamed: Unreferenced, seen: ScanResult, removed: Removed | null) {
  const remarks = [
    ...(seen.young > 0 ? [`${seen.young} younger than ${HOURS} hours were skipped`] : []),
    ...(seen.unknown > 0
      ? [
          `${seen.unknown} unknown were skipped: ${seen.unknownKeys.join(", ")}${seen.unknown > seen.unknownKeys.length ? " …" : ""}`,
        ]
      : []),
  ];
  const all = `${seen.objects} objects (${amountOf(seen.bytes)}) in storage`;
  const summaryOf = (part: string) => [`${all}: ${part}`, ...remarks].join("; ");
  const unreferenced = `${unnamed.objects} (${amountOf(unnamed.bytes)}) are unreferenced`;
  if (unnamed.objects === 0) return { detail: summaryOf("all are referenced by the database"), fixed: 0 };
  if (removed === null)
    return {
      ok: false,
      detail: summaryOf(`${unreferenced}; doctor --fix moves them to ${TRASH} for ${TRASH_DAYS} days`),
      fixed: 0,
    };
  const moved = `${removed.objects} (${amountOf(removed.bytes)}) that nothing names were moved to ${TRASH}, where they stay for ${TRASH_DAYS} days`;
  if (removed.left === null) return { detail: summaryOf(moved), fixed: removed.objects };
  return { ok: false, detail: summaryOf(`${unreferenced}; ${moved}; ${removed.left}`), fixed: removed.objects };
}

const amountOf = (bytes: number) =>
  bytes < 1e6 ? `${bytes} bytes` : bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
