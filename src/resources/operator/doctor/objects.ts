import { join } from "node:path";
import type { App } from "../../../app.ts";
import { TRASH, TRASH_DAYS } from "../trash.ts";
import { collectReferences } from "./collect-references.ts";
import { type Finding, runCheck } from "./finding.ts";
import { type FixResult, fixLoss, type Removed, removeUnreferenced } from "./fix.ts";
import { ReferenceIndex } from "./reference-index.ts";
import { findLosses, type Loss, type ScanResult, scanStorage, YOUNG_MS } from "./scan-storage.ts";

const TOLD = 5;
const HOURS = YOUNG_MS / 3_600_000;

type Options = {
  fix: boolean;
  /** Remove unreferenced objects even where they are most of all. */
  force: boolean;
  signal: AbortSignal;
  /** What goes on, and how many objects it is at. */
  tell(stage: string, objects: number): void;
};

/**
 * Database and storage against each other, both ways: what rows name and is missing, and what is there and nobody names.
 * With `fix` what can be mended is. Memory does not grow with either; the notes are two files in the data directory.
 */
export async function compareObjects(app: App, { fix, force, signal, tell }: Options): Promise<Finding[]> {
  const { objects } = app;
  if (!objects) return [];
  const notes = await ReferenceIndex.open(join(app.config.data_dir, "doctor.notes"));
  try {
    tell("what the database names", 0);
    await collectReferences(app, notes, signal);
    const seen = await scanStorage(app, objects, notes, {
      signal,
      tell: (looked) => tell("objects in storage", looked),
    });
    const missing = await runCheck("missing", async () => {
      const counts = new Losses();
      for await (const loss of findLosses(app, objects, notes, signal)) {
        counts.add(loss, fix && !isOnlyBeingMade(loss) ? await fixLoss(app, objects, loss) : []);
        tell("missing objects", counts.missing);
      }
      return counts.told(notes.required(), fix);
    });
    const unreferenced = await runCheck("unreferenced", async () => {
      const file = join(app.config.data_dir, "doctor.again");
      const telling = (removed: number) => tell("unreferenced objects", removed);
      const unnamed = notes.left();
      if (fix && !force && unnamed.objects * 2 > seen.objects) return tooMany(unnamed, seen);
      const removed = fix ? await removeUnreferenced(app, notes, { objects, file, signal, tell: telling }) : null;
      return describeUnreferenced(unnamed, seen, removed);
    });
    return [missing, unreferenced];
  } finally {
    await notes.close();
  }
}

/** A job is at it that ends with all of that made. */
const isOnlyBeingMade = ({ isBeingMade, lost }: Loss) =>
  isBeingMade && lost.every(({ kind }) => kind !== "source" && kind !== "subtitle");

const DONE: Record<Extract<FixResult, { done: string }>["done"], string> = {
  remade: "assets are made anew from their sources",
  errored: "assets are errored as media_lost",
  forgotten: "assets go on with what is left",
  failed: "subtitle tracks are failed",
  reopened: "deliveries of open batches wait for their bytes again",
};

class Losses {
  missing = 0;
  #beingMade = 0;
  #mended = 0;
  readonly #faults: string[] = [];
  #faulty = 0;
  readonly #done = new Map<keyof typeof DONE, number>();

  add(loss: Loss, settled: readonly FixResult[]): void {
    const { asset, lost } = loss;
    if (isOnlyBeingMade(loss)) {
      this.#beingMade += lost.length;
      return;
    }
    this.missing += lost.length;
    for (const one of settled) if ("done" in one) this.#done.set(one.done, (this.#done.get(one.done) ?? 0) + 1);
    const left = settled.find((one) => "left" in one);
    if (settled.length > 0 && !left) {
      this.#mended += lost.length;
      return;
    }
    const whose = asset === null ? "delivery" : `asset ${asset}`;
    for (const { key, kind } of lost) {
      this.#faulty++;
      if (this.#faults.length < TOLD) this.#faults.push(`${whose}: ${key} (${kind}${left ? `; ${left.left}` : ""})`);
    }
  }

  /** Throws Error for what is left. */
  told(named: number, fix: boolean) {
    const done = [...this.#done].map(([what, count]) => `${count} ${DONE[what]}`).join(", ");
    const making = this.#beingMade > 0 ? `; ${this.#beingMade} are being made anew` : "";
    if (this.missing === 0)
      return { detail: `${named} objects that the database names are in storage${making}`, mended: 0 };
    const detail = `${this.missing} of ${named} objects that the database names are missing from storage`;
    if (this.#faulty === 0) return { detail: `${detail}: ${done}${making}`, mended: this.#mended };
    const more = this.#faulty > TOLD ? " …" : "";
    const advice = fix ? "" : ". Look for them in a backup before doctor --fix lets go of them";
    return {
      ok: false,
      detail: `${detail}: ${done ? `${done}; left: ` : ""}${this.#faults.join(", ")}${more}${making}${advice}`,
      mended: this.#mended,
    };
  }
}

type Unreferenced = { objects: number; bytes: number };

/** Crashes do not leave so many: more likely this is the wrong database. */
function tooMany(unnamed: Unreferenced, seen: ScanResult) {
  const detail = `${unnamed.objects} of ${seen.objects} objects (${amountOf(unnamed.bytes)}) are named by nothing, more than half of all: nothing was removed, since the database may not be the one that belongs to them (look for a backup); doctor --fix --force moves them to the trash all the same`;
  return { ok: false, detail, mended: 0 };
}

function describeUnreferenced(unnamed: Unreferenced, seen: ScanResult, removed: Removed | null) {
  const beside = [
    ...(seen.young > 0 ? [`${seen.young} younger than ${HOURS} hours were left alone`] : []),
    ...(seen.unknown > 0
      ? [
          `${seen.unknown} unknown were left alone: ${seen.unknownKeys.join(", ")}${seen.unknown > seen.unknownKeys.length ? " …" : ""}`,
        ]
      : []),
  ];
  const all = `${seen.objects} objects (${amountOf(seen.bytes)}) in storage`;
  const told = (what: string) => [`${all}: ${what}`, ...beside].join("; ");
  const found = `${unnamed.objects} (${amountOf(unnamed.bytes)}) are named by nothing`;
  if (unnamed.objects === 0) return { detail: told("each is named by the database"), mended: 0 };
  if (removed === null)
    return {
      ok: false,
      detail: told(`${found}; doctor --fix moves them to ${TRASH} for ${TRASH_DAYS} days`),
      mended: 0,
    };
  const gone = `${removed.objects} (${amountOf(removed.bytes)}) that nothing names were moved to ${TRASH}, where they stay for ${TRASH_DAYS} days`;
  if (removed.left === null) return { detail: told(gone), mended: removed.objects };
  return { ok: false, detail: told(`${found}; ${gone}; ${removed.left}`), mended: removed.objects };
}

const amountOf = (bytes: number) =>
  bytes < 1e6 ? `${bytes} bytes` : bytes < 1e9 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
