import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createPackager, type Packager } from "#live/cmaf/packager.ts";
import type { Health, PackagerOptions, Part, Recording, SegmentInfo, TrackInfo } from "#live/cmaf/types.ts";
import type { TrackConfig } from "#src/lib/codecs/samples.ts";
import { emptyFolder } from "../folder.ts";
import { ffmpeg, ffprobe } from "../media/sources.ts";
import { type Message, readFlv } from "./flv-reader.ts";

export const picture = (seconds: number, rate: number | string = 30, size = "320x180") => [
  ...["-f", "lavfi", "-i", `testsrc2=s=${size}:r=${rate}:d=${seconds}`],
];
export const sound = (seconds: number, rate = 48_000) => [
  ...["-f", "lavfi", "-i", `sine=d=${seconds}:r=${rate},aformat=channel_layouts=stereo`],
];
/** H.264 as OBS publishes it, with a keyframe every `gop` frames. */
export const x264 = (gop: number, frames = 2) => [
  ...["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-sc_threshold", "0"],
  ...["-g", String(gop), "-bf", String(frames), ...(frames > 0 ? ["-b_strategy", "0"] : [])],
];
export const aac = ["-c:a", "aac", "-b:a", "96k"];

/** What ffmpeg publishes by RTMP: the same messages are in an FLV file. */
export async function messagesOf(...args: string[]): Promise<Message[]> {
  const path = join(emptyFolder(), "source.flv");
  await ffmpeg(...args, "-f", "flv", path);
  return readFlv(await readFile(path));
}

export type Packaged = {
  folder: string;
  inits: TrackInfo[];
  parts: (Omit<Part, "data"> & { content: Buffer })[];
  segments: SegmentInfo[];
  health: Health[];
  changed: TrackConfig[];
};

/** A packager whose reports are collected. */
export function collect(options: Partial<PackagerOptions> = {}): Packaged & { packager: Packager } {
  const packaged: Packaged = {
    folder: options.folder ?? emptyFolder(),
    inits: [],
    parts: [],
    segments: [],
    health: [],
    changed: [],
  };
  const packager = createPackager({
    folder: packaged.folder,
    ...options,
    onInit: (track) => packaged.inits.push(track),
    onPart: ({ data, ...part }) => packaged.parts.push({ ...part, content: Buffer.concat(data) }),
    onSegment: (segment) => packaged.segments.push(segment),
    onHealth: (health) => packaged.health.push(health),
    onConfigChanged: (config) => packaged.changed.push(config),
  });
  return Object.assign(packaged, { packager });
}

export function feed(packager: Packager, messages: readonly Message[]): void {
  for (const { config, sample } of messages)
    if (config) packager.config(config);
    else packager.sample({ ...sample });
}

/** Packages a whole stream. */
export async function packageAll(
  messages: readonly Message[],
  options: Partial<PackagerOptions> = {},
): Promise<Packaged & { recording: Recording }> {
  const collected = collect(options);
  feed(collected.packager, messages);
  return { ...collected, recording: await collected.packager.end() };
}

/** The same messages, that much later: timestamps wrap at `wrap`. */
export const shifted = (messages: readonly Message[], ms: number, wrap = 2 ** 32): Message[] =>
  messages.map((message) =>
    message.sample ? { sample: { ...message.sample, timestamp: (message.sample.timestamp + ms) % wrap } } : message,
  );

/** The init segment and the complete segments of a rendition in one file. */
export async function joined(packaged: Packaged, kind: "video" | "audio"): Promise<Buffer> {
  const name = packaged.inits.find((init) => init.kind === kind)?.name ?? "";
  const names = packaged.segments.filter(({ track }) => track === kind).map((segment) => segment.name ?? "");
  const files = ["init.mp4", ...names].map((file) => readFile(join(packaged.folder, name, file)));
  return Buffer.concat(await Promise.all(files));
}

export type Frame = { pts: number; dts: number; isKey: boolean };

/** The packets of the first track of a file, as ffprobe reads them. Seconds. */
export async function packetsIn(path: string): Promise<Frame[]> {
  const entries = ["-show_entries", "packet=pts_time,dts_time,flags", "-of", "csv=p=0"];
  return (await ffprobe(...entries, path))
    .trim()
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => line.split(","))
    .map(([pts, dts, flags]) => ({ pts: Number(pts), dts: Number(dts), isKey: flags?.startsWith("K") ?? false }));
}
