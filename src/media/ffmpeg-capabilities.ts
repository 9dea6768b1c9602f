import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  additionalVideoCodecs,
  audioCodecs,
  type Encoder,
  encodableAudioCodecs,
  primaryVideoCodecs,
  videoCodecs,
} from "#lib/codecs";
import { describeTotalLimits, missingIsolation } from "#lib/sandbox";
import type { EncodingSpec } from "./encoding-spec.ts";
import { MediaError } from "./error.ts";
import { type Binaries, run, UPLOADABLE, untrustedInput } from "./ffmpeg.ts";
import { type ComponentKind, componentsOf, LIST_MS, pixelFormatsOf } from "./ffmpeg-components.ts";
import { READABLE } from "./image.ts";
import { requireEncoder } from "./require-encoder.ts";

/** By ffmpeg's names; of alternatives, any one suffices. */
type Needed = readonly (string | readonly string[])[];

/** All components that this directory uses by name, and the decoders of common uploads. */
const NEEDED: Record<ComponentKind, Needed> = {
  encoders: [
    ...primaryVideoCodecs.map(({ softwareEncoder }) => softwareEncoder),
    ...encodableAudioCodecs.map(({ encoder }) => encoder),
    ...["mjpeg", "png", "libwebp", "libwebp_anim", "gif", "pcm_s16le", "pcm_f32le"],
  ],
  decoders: [
    ...[
      "h264",
      "hevc",
      "mpeg2video",
      "mpeg4",
      "prores",
      "mjpeg",
      "png",
      "webp",
      "gif",
      "flac",
      "ac3",
      "pcm_s16le",
      "pcm_f32le",
      "aac",
    ],
    ...[
      ["vp8", "libvpx"],
      ["vp9", "libvpx-vp9"],
      ["libaom-av1", "libdav1d", "av1"],
    ],
    ...[
      ["mp3", "mp3float"],
      ["opus", "libopus"],
      ["vorbis", "libvorbis"],
    ],
  ],
  demuxers: ["nut", ...UPLOADABLE.split(","), ...READABLE.image.split(",")],
  muxers: ["dash", "mp4", "image2", "image2pipe", "webp", "gif", "wav", "nut", "null"],
  filters: [
    ...["scale", "zscale", "tonemap", "format", "fps", "split", "setsar", "transpose", "bwdif", "color", "overlay"],
    ...["setpts", "settb", "trim", "select", "ssim", "psnr", "tile", "crop", "pad", "palettegen", "paletteuse"],
    ...["aresample", "aformat", "apad", "showwavespic"],
  ],
};

const TRY_MS = 60_000;

type Options = { encoder: Encoder; spec: EncodingSpec };

/**
 * Tests what these programs can do: all components exist, a second of video is encoded, segmented and read again, and a
 * playlist with a video's extension is refused. Throws Error with what is missing, or ffmpeg's message.
 */
export async function detectFfmpegCapabilities(binaries: Binaries, { encoder, spec }: Options): Promise<string> {
  const cwd = await mkdtemp(join(tmpdir(), "vodbox-doctor-"));
  const ffmpeg = (args: string[], timeLimitMs = TRY_MS) =>
    run(binaries.ffmpeg, { cwd, timeLimitMs, args: ["-hide_banner", "-nostdin", ...args] });
  try {
    const lines = (await ffmpeg(["-version"], LIST_MS)).toString();
    const version = /^ffmpeg version (\S+)/.exec(lines)?.[1] ?? "of an unknown version";
    await run(binaries.ffprobe, { cwd, timeLimitMs: LIST_MS, args: ["-version"] });
    const lacking: string[] = [];
    for (const kind of Object.keys(NEEDED) as ComponentKind[]) {
      const has = await componentsOf(binaries.ffmpeg, kind, { cwd });
      const missing = NEEDED[kind].map((one) => [one].flat()).filter((any) => !any.some((name) => has.has(name)));
      if (missing.length > 0) lacking.push(`${kind} ${missing.map((any) => any.join(" or ")).join(", ")}`);
    }
    if (lacking.length > 0)
      throw new Error(`ffmpeg ${version} lacks ${lacking.join("; ")}; use the bundled one or another build`);
    const { lacking: inSoftware } = await requireEncoder(binaries.ffmpeg, encoder, spec);
    await encodeAndRead(ffmpeg, cwd, spec);
    await refusesPlaylists(binaries, cwd);
    const notes = [
      ...inSoftware.map((one) => `encodes in software: ${one}`),
      ...(await lackingCodecs(binaries.ffmpeg, cwd)),
      ...(await openings(binaries.ffmpeg)),
    ];
    const total = await describeTotalLimits(binaries.ffmpeg);
    return `ffmpeg ${version} has everything needed, encodes and decodes${notes.length > 0 ? `, but ${notes.join("; ")}` : ""} (${total})`;
  } catch (error) {
    if (!(error instanceof MediaError)) throw error;
    const last = error.logTail.split("\n").at(-1)?.trim();
    throw new Error(`${error.message}${last ? ` It said: ${last}` : ""} (${binaries.ffmpeg})`);
  } finally {
    await rm(cwd, { recursive: true, force: true });
  }
}

/** Only encoding profiles with these codecs need them. */
async function lackingCodecs(ffmpeg: string, cwd: string): Promise<string[]> {
  const has = await componentsOf(ffmpeg, "encoders", { cwd });
  const notes: string[] = [];
  for (const { name, softwareEncoder, hdrFormat } of additionalVideoCodecs) {
    if (!has.has(softwareEncoder))
      notes.push(`cannot encode ${name}, for lack of ${softwareEncoder}, which the ffmpeg of a release has`);
    else if (!(await pixelFormatsOf(ffmpeg, softwareEncoder, { cwd })).has(hdrFormat.pixel_format))
      notes.push(`cannot keep HDR in ${name}, for lack of 10 bit in ${softwareEncoder}`);
  }
  return notes;
}

async function openings(ffmpeg: string): Promise<string[]> {
  const open = await missingIsolation(ffmpeg);
  return open.length > 0 ? [`is not fully confined: ${open.join("; ")}`] : [];
}

async function encodeAndRead(
  ffmpeg: (args: string[]) => Promise<Buffer>,
  cwd: string,
  { video, audio }: EncodingSpec,
): Promise<void> {
  const at = (name: string) => `file:${join(cwd, name)}`;
  const quiet = ["-y", "-loglevel", "error"];
  const source = ["-f", "lavfi", "-i", "testsrc2=s=128x72:r=10:d=1", "-f", "lavfi", "-i", "sine=d=1"];
  const codecs = [
    ...["-c:v", videoCodecs[video.codec].softwareEncoder, "-pix_fmt", video.pixel_format],
    ...["-c:a", audioCodecs[audio.codec].encoder],
  ];
  await ffmpeg([...quiet, ...source, ...codecs, at("clip.mp4")]);
  await ffmpeg([...quiet, ...untrustedInput(join(cwd, "clip.mp4")), "-c", "copy", "-f", "dash", at("clip.mpd")]);
  const imageOutput = ["-frames:v", "1", "-c:v", "mjpeg", "-pix_fmt", "yuvj420p", "-f", "image2", "-update", "1"];
  await ffmpeg([...quiet, ...untrustedInput(join(cwd, "clip.mp4")), ...imageOutput, at("frame.jpg")]);
  if ((await stat(join(cwd, "frame.jpg"))).size === 0) throw new Error("ffmpeg produced an empty image");
}

/** An untrusted file must not be able to refer to another one. */
async function refusesPlaylists({ ffprobe }: Binaries, cwd: string): Promise<void> {
  const list = join(cwd, "list.mp4");
  const lines = ["#EXTM3U", "#EXT-X-TARGETDURATION:1", "#EXTINF:1,", `file:${join(cwd, "clip.mp4")}`, "#EXT-X-ENDLIST"];
  await writeFile(list, `${lines.join("\n")}\n`);
  const args = ["-hide_banner", "-loglevel", "error", "-show_entries", "stream=codec_name", ...untrustedInput(list)];
  const refused = await run(ffprobe, { cwd, timeLimitMs: LIST_MS, args }).then(
    (said) => !said.includes("codec_name"),
    () => true,
  );
  if (!refused)
    throw new Error("ffmpeg follows references in a playlist named .mp4; use the bundled one or a newer build");
}
