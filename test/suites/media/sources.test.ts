import { appendFileSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test, vi } from "vitest";
import { encode } from "#media/encode.ts";
import { encodingSpec as spec } from "#media/encoding-spec.ts";
import { MediaError } from "#media/error.ts";
import { probeSource } from "#media/timeline.ts";
import { warningsOf } from "#media/tracks.ts";
import { corpus } from "#test/media/corpus/index.ts";
import { RATE, SIZE, type Source } from "#test/media/corpus/source.ts";
import { amount } from "#test/support/amount.ts";
import { beepsOf, flashesOf } from "#test/support/media/beeps.ts";
import { binaries, ffmpeg, temporaryFolder } from "#test/support/media/sources.ts";

/** What people upload plays, whole and in sync: a sample of the corpus, and all of it in the nightly tier. */

vi.setConfig({ maxConcurrency: 2 });

const folder = temporaryFolder("sources");
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** One of so many rows, another one of each family. */
const EVERY = amount(97, 1, "VODBOX_CORPUS_EVERY");
/** Receives a line for each row, from which the table in docs/encoding.md is made. */
const RESULTS = process.env.VODBOX_CORPUS_RESULTS;

/** The distance of a beep or a flash from its second. */
const APART_SECONDS = 0.045;
const LENGTH_SECONDS = 0.15;
/** By which tracks may end apart: a frame, and two packets of audio. */
const END_SECONDS = 0.12;
const RATE_TOLERANCE = 0.02;

const rows = corpus
  .map((row, index) => [`${index}: ${row.name} (${row.family}, .${row.ending})`, row, index] as const)
  .filter(([, , index]) => index % EVERY === 0);

async function made(row: Source, index: number) {
  const input = join(folder, `${index}.${row.ending}`);
  await (typeof row.from === "function" ? row.from(input) : ffmpeg(...row.from, input));
  return input;
}

async function encoded(input: string) {
  const probe = await probeSource(input, binaries);
  const outDir = `${input}-out`;
  try {
    const result = await encode({ input, outDir, probe, spec, binaries, scratchDir: folder });
    const warnings = [...warningsOf(probe), ...warningsOf(result)].map(({ code }) => code);
    const playlist = join(outDir, "master.m3u8");
    // The only rendition of an audio asset is its audio.
    const isAudio = result.renditions.every(({ width }) => width === null);
    const tracks = isAudio ? result.renditions.length : result.audioRenditions.length;
    const seen = isAudio ? [] : await flashesOf(playlist, result.frameRate ?? RATE);
    const heard = tracks > 0 ? await beepsOf(playlist) : [];
    const ends = [...result.renditions, ...result.audioRenditions].map((one) => endOf(join(outDir, one.playlist_path)));
    return {
      ...result,
      ends,
      size: isAudio ? null : `${result.width}x${result.height}`,
      tracks,
      warnings,
      seen,
      heard,
    };
  } finally {
    rmSync(outDir, { recursive: true, force: true });
  }
}

/** The end of a rendition, in seconds: the sum of its segments. */
const endOf = (playlist: string): number =>
  [...readFileSync(playlist, "utf8").matchAll(/^#EXTINF:([\d.]+)/gm)].reduce(
    (sum, [, length]) => sum + Number(length),
    0,
  );

/** The seconds at whose begin something is found; NaN for what is elsewhere. */
const secondsOf = (times: readonly number[], apart: number): number[] =>
  times.map((time) => (Math.abs(time - Math.round(time)) <= apart ? Math.round(time) : Number.NaN));

const allSeconds = ({ seconds = 0 }: Source) => Array.from({ length: Math.floor(seconds) }, (_, at) => at);

/** What is not as it should be, in words. */
async function faultsOf(row: Source, input: string): Promise<string[]> {
  const { seconds = 0, within = LENGTH_SECONDS, size, rate, tracks = 1, warnings = [] } = row;
  if (row.error) {
    const error = await encoded(input).then(
      () => new Error("It plays."),
      (reason) => reason,
    );
    if (!(error instanceof MediaError)) return [error.message];
    return row.error.includes(error.code) ? [] : [`The error is ${error.code}: ${error.message}`];
  }
  const result = await encoded(input);
  const faults: string[] = [];
  const compare = (what: string, found: unknown, expected: unknown) => {
    if (JSON.stringify(found) !== JSON.stringify(expected))
      faults.push(`${what}: ${JSON.stringify(found)} instead of ${JSON.stringify(expected)}`);
  };
  compare("warnings", result.warnings, warnings);
  compare("audio tracks", result.tracks, tracks);
  if (size !== undefined) compare("size", result.size, size);
  if (Math.abs(result.durationSeconds - seconds) > within) compare("seconds", result.durationSeconds, seconds);
  if (rate && Math.abs((result.frameRate ?? 0) / rate - 1) > RATE_TOLERANCE) compare("rate", result.frameRate, rate);
  // Every track plays to the end.
  if (result.ends.some((end) => Math.abs(end - result.durationSeconds) > (row.ends ?? END_SECONDS)))
    faults.push(`ends: ${result.ends} instead of ${result.durationSeconds}`);
  // A frame is shown from its time on: what it shows may begin a frame earlier.
  const apart = (row.apart ?? APART_SECONDS) + 1 / (result.frameRate ?? RATE);
  if (result.size !== null && row.flashes?.length !== 0)
    compare(`flashes (${result.seen})`, secondsOf(result.seen, apart), row.flashes ?? allSeconds(row));
  if (tracks > 0 && row.beeps?.length !== 0)
    compare(
      `beeps (${result.heard})`,
      secondsOf(result.heard, row.apart ?? APART_SECONDS),
      row.beeps ?? allSeconds(row),
    );
  return faults;
}

describe.concurrent("a source", () => {
  test.each(rows)("%s", async (_, row, index) => {
    const input = await made(row, index);
    const faults = await faultsOf(row, input).catch((error) => [
      `${error.message} ${error.logTail ?? ""}`.slice(0, 500),
    ]);
    rmSync(input, { force: true });
    if (RESULTS) appendFileSync(RESULTS, `${JSON.stringify({ index, family: row.family, name: row.name, faults })}\n`);
    expect(faults).toEqual([]);
  });
});

test("the corpus has what people upload", () => {
  expect(corpus.length).toBeGreaterThanOrEqual(250);
  expect(new Set(corpus.map(({ family, ending, name }) => `${family} ${ending} ${name}`)).size).toBe(corpus.length);
  expect(corpus.every(({ size, error, seconds }) => error || (seconds ?? 0) > 0 || size === SIZE)).toBe(true);
});
