import { rm } from "node:fs/promises";
import { join } from "node:path";

/** A viewer may be reading what has just left the window, which is at least six target durations of at most 12 s. */
const SLACK_SECONDS = 60;
const MIN_WINDOW_SECONDS = 72;

/** Deletes the segments of a stream without a recording, once they are no longer in the window of its viewers. */
export class OldSegments {
  readonly #folder: string;
  readonly #keptSeconds: number;
  /** In order of time, for each track. */
  readonly #kept = new Map<string, { name: string; endSeconds: number }[]>();

  constructor(folder: string, dvrSeconds: number) {
    this.#folder = folder;
    this.#keptSeconds = Math.max(dvrSeconds, MIN_WINDOW_SECONDS) + SLACK_SECONDS;
  }

  add(track: string, name: string, endSeconds: number): void {
    const kept = this.#kept.get(track) ?? [];
    this.#kept.set(track, kept);
    kept.push({ name, endSeconds });
    while (endSeconds - (kept[0]?.endSeconds ?? endSeconds) > this.#keptSeconds) {
      const oldest = kept.shift() as { name: string };
      // What cannot be deleted now is deleted with the directory.
      rm(join(this.#folder, track, oldest.name), { force: true }).catch(() => {});
    }
  }
}
