/**
 * Numbered files: `before`, a number from `first` to `last` with at least `digits` digits, and `after`. Thousands of
 * segments are one such run.
 */
export type NumberedFiles = { before: string; digits: number; first: number; last: number; after: string };

/** Objects of another asset's media that a clip plays; paths are relative to their common prefix. */
export type SharedMedia = {
  /** The time in the media at which the clip begins, in seconds: its segments keep their timestamps. */
  startSeconds: number;
  segments: NumberedFiles[];
  /** Init segments and images. */
  objects: string[];
};

/** A path that ends in a number and an extension. */
function parse(path: string): { before: string; number: string; after: string } | null {
  const dot = path.lastIndexOf(".");
  const after = path.slice(dot);
  if (dot < 1 || !/^\.[A-Za-z0-9]{1,8}$/.test(after)) return null;
  let from = dot;
  while (from > 0 && dot - from < 16 && isDigit(path.charCodeAt(from - 1))) from--;
  const number = path.slice(from, dot);
  return number === "" || number.length > 15 ? null : { before: path.slice(0, from), number, after };
}

const isDigit = (code: number) => code >= 48 && code <= 57;

/**
 * The run that consecutive paths form, each of which may be repeated at once; null when they are not numbered so.
 * @example
 * numberedFiles(["720p/1.m4s", "720p/2.m4s"]) // => { before: "720p/", after: ".m4s", digits: 1, first: 1, last: 2 }
 */
export function numberedFiles(paths: readonly string[]): NumberedFiles | null {
  const start = parse(paths[0] ?? "");
  if (!start) return null;
  const { before, after } = start;
  const first = Number(start.number);
  const digits = start.number.startsWith("0") ? start.number.length : 1;
  let last = first;
  for (const path of paths) {
    if (path !== nameOf({ before, digits, after }, last)) last++;
    if (path !== nameOf({ before, digits, after }, last)) return null;
  }
  return { before, digits, first, last, after };
}

const nameOf = ({ before, digits, after }: Omit<NumberedFiles, "first" | "last">, number: number) =>
  before + String(number).padStart(digits, "0") + after;

/** The path of a file of a run. */
export const pathOf = (run: NumberedFiles, number: number): string => nameOf(run, number);

/** Whether a run consists of files of another one. */
export const containsRun = (all: NumberedFiles, run: NumberedFiles): boolean =>
  run.before === all.before &&
  run.after === all.after &&
  run.digits === all.digits &&
  run.first <= run.last &&
  run.first >= all.first &&
  run.last <= all.last;

const isIn = (run: NumberedFiles, path: string): boolean => {
  const { before, after } = run;
  if (path.length > before.length + after.length + 15 || !path.startsWith(before) || !path.endsWith(after))
    return false;
  const number = Number(path.slice(before.length, path.length - after.length));
  return number >= run.first && number <= run.last && path === nameOf(run, number);
};

/** Whether a clip plays the object at `path`. */
export const isShared = ({ segments, objects }: SharedMedia, path: string): boolean =>
  segments.some((run) => isIn(run, path)) || objects.includes(path);

/** Whether any of many clips plays an object; takes time logarithmic in their number. */
export class SharedPaths {
  readonly #objects = new Set<string>();
  readonly #runs = new Map<string, [first: number, last: number][]>();
  #isSorted = true;

  add({ segments, objects }: SharedMedia): void {
    for (const path of objects) this.#objects.add(path);
    for (const { before, after, first, last } of segments) {
      const name = JSON.stringify([before, after]);
      const runs = this.#runs.get(name);
      if (runs) runs.push([first, last]);
      else this.#runs.set(name, [[first, last]]);
    }
    this.#isSorted = false;
  }

  has(path: string): boolean {
    if (this.#objects.has(path)) return true;
    const parsed = parse(path);
    if (!parsed) return false;
    this.#sort();
    const runs = this.#runs.get(JSON.stringify([parsed.before, parsed.after])) ?? [];
    const number = Number(parsed.number);
    let from = 0;
    let to = runs.length;
    while (from < to) {
      const middle = (from + to) >> 1;
      if ((runs[middle] as [number, number])[0] <= number) from = middle + 1;
      else to = middle;
    }
    const run = runs[from - 1];
    return run !== undefined && number <= run[1];
  }

  /** Overlapping runs become one. */
  #sort(): void {
    if (this.#isSorted) return;
    for (const [name, runs] of this.#runs) {
      const merged: [number, number][] = [];
      for (const [first, last] of runs.sort((a, b) => a[0] - b[0])) {
        const before = merged.at(-1);
        if (before && first <= before[1] + 1) before[1] = Math.max(before[1], last);
        else merged.push([first, last]);
      }
      this.#runs.set(name, merged);
    }
    this.#isSorted = true;
  }
}
