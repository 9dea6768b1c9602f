import type { App } from "#app.ts";
import { readInit } from "#lib/isobmff";
import { mediaPlaylist } from "#lib/manifests";
import { readDefaults } from "#media/clip/fragments.ts";
import { comparableInit } from "#media/join/comparable-init.ts";
import { JoinImpossible } from "#media/join/faults.ts";
import { AudioJoiner, SILENCE_SECONDS } from "#media/join/join-audio.ts";
import { legible } from "#media/join/read-part.ts";
import { contentTypeOf } from "#model/media-types.ts";
import { newDeliveredPrefix } from "#model/object-keys.ts";
import { registerPending } from "#platform/http/object-gc.ts";
import type { AddedAudioMedia } from "#storage/db/schema.ts";
import { readSmallObject, writeSmallObject } from "#storage/objects/small-objects.ts";
import type { ObjectStore } from "#storage/objects/store.ts";
import { FOLDER, PLAYLIST, segmentFile } from "./verify.ts";

/** Segments that are written at a time, of all tracks: those of a day. */
export const MAX_SEGMENTS = 22_000;
/** Usual audio has at most this many samples per second. */
const MAX_TIMESCALE = 192_000;
const AT_ONCE = 16;
const MAX_SEGMENT_BYTES = 16 * 2 ** 20;
const HLS_VERSION = 7;

/** The media of an added track. */
export type TrackMedia = { prefix: string; media: AddedAudioMedia };
/**
 * A part of a new track, in seconds: from `from` to `to` it has another track, whose time `start` is heard at `from`, or silence.
 * Each begins where the one before ends, the first one at 0.
 */
export type Stretch = { from: number; to: number; audio: (TrackMedia & { start: number }) | null };

/** The number of segments of a track. */
export const segmentsOf = ({ segments }: AddedAudioMedia): number =>
  segments.reduce((sum, [, , repeat]) => sum + repeat + 1, 0);

/** The number of segments that `spliceTrack` writes at most for these: also of silence, where there is no other audio. */
export const segmentsOfStretches = (stretches: readonly Stretch[]): number =>
  stretches.reduce((sum, { from, to, audio }) => {
    const heard = audio ? Math.max(0, endOf(audio.media) - audio.start) : 0;
    const silent = Math.ceil(Math.max(0, to - from - heard) / SILENCE_SECONDS);
    return sum + silent + (audio ? segmentsOf(audio.media) : 0);
  }, 0);

/** Seconds, on the clock of the segments. */
export const endOf = ({ segments, timescale }: AddedAudioMedia): number =>
  segments.reduce((end, [start, duration, repeat]) => Math.max(end, start + duration * (repeat + 1)), 0) / timescale;

/**
 * Writes the media of a track that consists of parts of others and of silence, and begins at 0: nothing is encoded. No row
 * references them yet. Throws JoinImpossible where the parts have different encodings, or no silence is known for theirs.
 */
export async function spliceTrack(
  app: App,
  objects: ObjectStore,
  { tenantId, stretches, signal }: { tenantId: number; stretches: readonly Stretch[]; signal: AbortSignal },
): Promise<TrackMedia & { bytes: number }> {
  const sources = stretches.flatMap(({ audio }) => (audio ? [audio] : []));
  const [first] = sources;
  if (!first) throw new JoinImpossible("an audio track would be silent");
  const read = async (key: string) => {
    signal.throwIfAborted();
    const bytes = await readSmallObject(objects, key, { maxBytes: MAX_SEGMENT_BYTES });
    if (!bytes) throw new JoinImpossible("a segment of an added audio track is missing from storage");
    return bytes;
  };
  const init = await read(`${first.prefix}${FOLDER}/init.mp4`);
  for (const prefix of new Set(sources.map((one) => one.prefix))) {
    const other = prefix === first.prefix ? init : await read(`${prefix}${FOLDER}/init.mp4`);
    if (!comparableInit(other).equals(comparableInit(init)))
      throw new JoinImpossible("their added audio tracks have different encodings");
  }
  const { timescale } = legible(() => readInit(init));
  // Silence is written in packets of this clock.
  if (timescale > MAX_TIMESCALE || sources.some(({ media }) => media.timescale !== timescale))
    throw new JoinImpossible("the clock of an added audio track is not that of its manifest, or is too fast");
  const prefix = newDeliveredPrefix(tenantId);
  await registerPending(app, [prefix]);
  const writes = new Writes();
  let bytes = 0;
  let files = 0;
  const write = (file: string, data: Buffer) => {
    signal.throwIfAborted();
    // Gaps between segments are not known before.
    if (++files > 2 * MAX_SEGMENTS) throw new JoinImpossible("an added audio track would have too many segments");
    bytes += data.length;
    return writes.add(() => writeSmallObject(objects, prefix + file, data, { contentType: contentTypeOf(file) }));
  };
  const defaults = legible(() => readDefaults(init));
  const { channels, codec, bandwidth } = first.media;
  const rendition = { name: FOLDER, bytes: init, channels, defaults };
  const joiner = legible(() => new AudioJoiner(rendition, (folder, file, data) => write(`${folder}/${file}`, data)));
  for (const [index, { from, to, audio }] of stretches.entries()) {
    const end = { time: to, timescale: 1 };
    if (!audio) {
      await joiner.addSilence(end);
      continue;
    }
    const segments = Array.from(
      { length: segmentsOf(audio.media) },
      (_, number) => `${audio.prefix}${segmentFile(number + 1)}`,
    );
    const range = { from: { time: from, timescale: 1 }, to: end, start: audio.start };
    const isLast = index === stretches.length - 1;
    await joiner.add({ read: readAhead(segments, read) }, { segments, defaults }, { ...range, isLast });
  }
  const { segments } = await joiner.finish();
  const playlist = Buffer.from(playlistOf(segments));
  await write(`${FOLDER}/init.mp4`, init);
  await write(PLAYLIST, playlist);
  await writes.end();
  const media: AddedAudioMedia = {
    codec,
    channels,
    bandwidth: sources.reduce((most, one) => Math.max(most, one.media.bandwidth), bandwidth),
    timescale,
    segments: rowsOfSegments(segments),
  };
  return { prefix, media, bytes };
}

/** Segments of equal durations that follow each other are one row. */
function rowsOfSegments(segments: readonly { start: number; duration: number }[]): AddedAudioMedia["segments"] {
  const rows: AddedAudioMedia["segments"] = [];
  for (const { start, duration } of segments) {
    const last = rows.at(-1);
    if (last && last[1] === duration && last[0] + duration * (last[2] + 1) === start) last[2]++;
    else rows.push([start, duration, 0]);
  }
  return rows;
}

/** The playlist of a track whose segments are numbered from 1. */
export function playlistOf(segments: readonly { durationSeconds: number }[]): string {
  const longest = segments.reduce((most, { durationSeconds }) => Math.max(most, durationSeconds), 0);
  return mediaPlaylist({
    version: HLS_VERSION,
    initUri: "init.mp4",
    targetDurationSeconds: Math.max(1, Math.round(longest)),
    segments: segments.map(({ durationSeconds }, index) => ({
      uri: segmentFile(index + 1).slice(FOLDER.length + 1),
      durationSeconds,
    })),
  });
}

/** Reads objects in their order, some of them before they are needed. */
function readAhead(keys: readonly string[], read: (key: string) => Promise<Buffer>): (key: string) => Promise<Buffer> {
  const started = new Map<string, Promise<Buffer>>();
  let next = 0;
  return (key) => {
    while (next < keys.length && started.size < AT_ONCE) {
      const ahead = keys[next++] as string;
      const reading = read(ahead);
      // It is reported when it is needed.
      reading.catch(() => {});
      started.set(ahead, reading);
    }
    const found = started.get(key) ?? read(key);
    started.delete(key);
    return found;
  };
}

/** Some writes at a time; the error of one is thrown by the next, or at the end. */
class Writes {
  readonly #running = new Set<Promise<void>>();
  #failed: { error: unknown } | null = null;

  async add(write: () => Promise<void>): Promise<void> {
    while (this.#running.size >= AT_ONCE) await Promise.race(this.#running);
    this.#check();
    const running: Promise<void> = write()
      .catch((error: unknown) => {
        this.#failed ??= { error };
      })
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  async end(): Promise<void> {
    await Promise.all(this.#running);
    this.#check();
  }

  #check(): void {
    if (this.#failed) throw this.#failed.error;
  }
}
