import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { encode } from "#media/encode.ts";
import { encodingSpec } from "#media/encoding-spec.ts";
import { probeSource as probe } from "#media/timeline.ts";
import type { TestApp } from "./app.ts";
import { type Files, leased } from "./batches.ts";
import { emptyFolder } from "./folder.ts";
import { binaries, fast, ffmpeg } from "./media/sources.ts";

/** The color of each second of `colouredFilm`. */
export const COLOURS = ["red", "lime", "blue", "white", "black", "yellow"] as const;

/** Six seconds, each of another color, so that a frame shows its time. */
export async function colouredSource(path: string): Promise<void> {
  const inputs = COLOURS.flatMap((name) => ["-f", "lavfi", "-i", `color=${name}:s=640x360:r=25:d=1`]);
  const graph = `concat=n=${COLOURS.length}:v=1`;
  await ffmpeg(...inputs, "-filter_complex", graph, ...fast, "-g", "25", "-pix_fmt", "yuv420p", path);
}

/**
 * The film encoded by us, and segmented by another packager: one file with byte ranges, as MPEG-TS (times from 1.4 s
 * on) and as fMP4.
 */
export async function colouredFilm(): Promise<Files> {
  const folder = emptyFolder();
  const input = join(folder, "source.mp4");
  await colouredSource(input);
  const outDir = join(folder, "out");
  const made = await encode({
    input,
    outDir,
    spec: encodingSpec,
    binaries,
    scratchDir: folder,
    probe: await probe(input, binaries),
  });
  const files: Files = {};
  for (const name of new Set(
    [...made.files, made.manifest, made.dash, made.thumbnail, made.storyboard ?? ""].filter(Boolean),
  ))
    files[`ours/${name}`] = new Uint8Array(readFileSync(join(outDir, name)));
  for (const [kind, more] of [
    ["ts", []],
    ["ranges", ["-hls_segment_type", "fmp4"]],
  ] as const) {
    const hls = [
      "-c",
      "copy",
      "-f",
      "hls",
      "-hls_time",
      "2",
      "-hls_playlist_type",
      "vod",
      "-hls_flags",
      "single_file",
      ...more,
    ];
    const to = emptyFolder();
    await ffmpeg("-i", input, ...hls, join(to, "low.m3u8"));
    for (const name of readdirSync(to)) files[`${kind}/${name}`] = new Uint8Array(readFileSync(join(to, name)));
    files[`${kind}/master.m3u8`] =
      `#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=90000,RESOLUTION=640x360,CODECS="avc1.64001e"\nlow.m3u8\n`;
  }
  return files;
}

/** Assets of a batch, by the directory of each one's `master.m3u8`. */
export async function delivered<Name extends string>(
  app: TestApp,
  key: string,
  { files, assets }: { files: Files; assets: Record<Name, Record<string, unknown>> },
): Promise<Record<Name, { id: number; external_id: string }>> {
  const batch = await leased(app, key);
  await batch.putAll(files);
  const names = Object.keys(assets) as Name[];
  const committed = await batch.commit({
    assets: names.map((name) => ({
      title: name,
      original_filename: `${name}.mov`,
      relative_path: `${name}.mov`,
      duration_seconds: 6,
      hls: { manifest_path: `${name}/master.m3u8`, renditions: [] },
      playback_policy: "public",
      ...assets[name],
    })),
  });
  if (committed.status !== 200) throw new Error(committed.text);
  return Object.fromEntries(names.map((name, index) => [name, committed.body.assets[index]])) as Record<
    Name,
    { id: number; external_id: string }
  >;
}
