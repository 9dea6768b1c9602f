import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import { newFolder } from "../folder.ts";
import { type ParsedPlaylist, parseLivePlaylist } from "../hls-live-parser.ts";
import type { LiveServer } from "../live.ts";
import { complaints, ffprobe } from "../media/sources.ts";

/** What viewers of the channel `stage` request. */

/** On a busy machine the encoder of renditions is too slow at first, and begins again after half a minute. */
export const RENDITION_LIMIT_MS = 100_000;

export async function get(url: string) {
  const response = await fetch(url);
  return { status: response.status, bytes: Buffer.from(await response.arrayBuffer()) };
}
export const textOf = async (url: string) => (await get(url)).bytes.toString();

/** The URL of the media playlist of a track; null while it is not listed. */
export async function playlistUrl({ base }: Pick<LiveServer, "base">, track: string): Promise<string | null> {
  const master = `${base}/live/stage/master.m3u8`;
  const uri = new RegExp(`^.*/${track}/live\\.m3u8$`, "m").exec(await textOf(master))?.[0];
  return uri === undefined ? null : new URL(uri, master).href;
}

export const complete = ({ segments }: ParsedPlaylist) =>
  segments.filter((segment) => segment.complete && !segment.isGap);

export const completeSegments = async (playlist: string) => complete(parseLivePlaylist(await textOf(playlist)));

/** Presentation times of all frames of segments, which `ffmpeg` must decode without a complaint. */
export async function framesOf(playlist: string, names: readonly string[]): Promise<string[]> {
  const files = await Promise.all(["init.mp4", ...names].map((name) => get(new URL(name, playlist).href)));
  expect(files.map(({ status }) => status)).toEqual(files.map(() => 200));
  const path = join(newFolder(), "media.mp4");
  await writeFile(path, Buffer.concat(files.map(({ bytes }) => bytes)));
  expect(await complaints("-i", path, "-f", "null", "-")).toBe("");
  const frames = await ffprobe("-select_streams", "v", "-show_entries", "frame=pts", "-of", "csv=p=0", path);
  return frames.match(/\d+/g) ?? [];
}
