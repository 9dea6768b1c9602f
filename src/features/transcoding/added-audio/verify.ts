import type { App } from "#app.ts";
import { HttpError } from "#lib/base";
import { segmentFileName } from "#media/arguments.ts";
import { encodingSpec } from "#media/encoding-spec.ts";
import { ownPath } from "#model/object-keys.ts";
import { storageOf } from "#platform/http/storage.ts";
import { STEREO_CHANNELS, stereoName } from "#protocol/audio-renditions.ts";
import type { AddedAudioMedia, AudioTrackRow } from "#storage/db/schema.ts";
import { readSmallObject } from "#storage/objects/small-objects.ts";

/** The folder of the only rendition. */
export const FOLDER = stereoName(0);
export const PLAYLIST = `${FOLDER}/${encodingSpec.hls.playlist}`;
/** The file of segment `number`, from 1. */
export const segmentFile = (number: number): string => `${FOLDER}/${segmentFileName(number)}`;
const MAX_MANIFEST_BYTES = 4 * 2 ** 20;
const MAX_SEGMENTS = 50_000;
const PAGE = 1000;
/** The delay of an encoder. */
const LATE_SECONDS = 0.1;

const refuse = (message: string): never => {
  throw new HttpError(422, "invalid_transcoding_result", message);
};

/**
 * What a worker wrote for a track: the segments of its DASH manifest, which must all be in storage. Its manifests are read as the
 * worker's claims, and only numbers are kept of them. Throws 422 `invalid_transcoding_result`.
 */
export async function verifyTrack(app: App, track: AudioTrackRow): Promise<{ media: AddedAudioMedia; bytes: number }> {
  const objects = storageOf(app);
  const prefix = track.prefix as string;
  const sizes = new Map<string, number>();
  for (let cursor: string | null = null; ; ) {
    const page: Awaited<ReturnType<typeof objects.list>> = await objects.list(prefix, {
      limit: PAGE,
      ...(cursor !== null && { cursor }),
    });
    for (const { key, bytes } of page.objects) sizes.set(ownPath(prefix, key), bytes);
    if (sizes.size > MAX_SEGMENTS) return refuse(`There are over ${MAX_SEGMENTS} files.`);
    cursor = page.cursor;
    if (cursor === null) break;
  }
  for (const file of [PLAYLIST, `${FOLDER}/init.mp4`, "manifest.mpd"])
    if (!sizes.has(file)) refuse(`${file} is not in storage.`);
  const read = async (file: string) =>
    (await readSmallObject(objects, prefix + file, { maxBytes: MAX_MANIFEST_BYTES }))?.toString("utf8") ??
    refuse(`${file} is not in storage.`);
  const playlist = await read(PLAYLIST);
  const mpd = await read("manifest.mpd");
  const references = playlist.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  for (const name of references)
    if (!/^\d{5,9}\.m4s$/.test(name) || !sizes.has(`${FOLDER}/${name}`)) refuse(`${FOLDER}/${name} is not a segment.`);
  const at = mpd.indexOf("<Representation");
  const representation = at < 0 ? "" : mpd.slice(at);
  const text = (name: string) => new RegExp(` ${name}="([^"]{1,60})"`).exec(representation.slice(0, 2000))?.[1] ?? "";
  const number = (value: string, name: string) => {
    const parsed = Number(value);
    return Number.isSafeInteger(parsed) && parsed >= 0 ? parsed : refuse(`${name} is not a whole number.`);
  };
  const codec = text("codecs");
  if (!/^[A-Za-z0-9.]{4,30}$/.test(codec)) refuse("The codec of the manifest is not one.");
  const segments: AddedAudioMedia["segments"] = [];
  let count = 0;
  let end = 0;
  for (const [, attributes = ""] of representation.matchAll(/<S ([^<>]{1,100})\/>/g)) {
    const of = (name: string) => new RegExp(`\\b${name}="(\\d{1,15})"`).exec(attributes)?.[1];
    const duration = number(of("d") ?? "", "d");
    const repeat = number(of("r") ?? "0", "r");
    const start = number(of("t") ?? String(end), "t");
    segments.push([start, duration, repeat]);
    end = start + duration * (repeat + 1);
    count += repeat + 1;
  }
  if (count === 0 || count !== references.length) refuse("The manifests list other segments.");
  const media: AddedAudioMedia = {
    codec,
    segments,
    channels: STEREO_CHANNELS,
    bandwidth: number(text("bandwidth"), "bandwidth"),
    timescale: Math.max(1, number(text("timescale"), "timescale")),
    ...(track.startSeconds > 0 && { startSeconds: track.startSeconds }),
  };
  // Workers of versions without `start_seconds` write what would be out of sync.
  if (Math.abs((segments[0]?.[0] ?? 0) / media.timescale - track.startSeconds) > LATE_SECONDS)
    refuse(`The segments do not begin at start_seconds, ${track.startSeconds}: the worker may need an update.`);
  return { media, bytes: [...sizes.values()].reduce((sum, one) => sum + one, 0) };
}
