import { copyFile, link, mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { mapBounded } from "#lib/base";
import type { Rate } from "#lib/codecs";
import { INIT_NAME, SEGMENT_PATTERN } from "#media/arguments.ts";
import { encodingSpec } from "#media/encoding-spec.ts";
import { writeManifests } from "#media/manifests.ts";
import { readWritten, type Written } from "#media/package.ts";
import { readCaptions } from "../captions/written-captions.ts";
import { recover } from "../cmaf/recover.ts";
import type { FinishedRecording } from "./messages.ts";
import { writeSource } from "./write-source.ts";

const AT_ONCE = 16;
const SOURCE = "source.mp4";

/** Tracks of a recording, by the names of their directories. Null tracks have no segment. */
export type RecordedTracks = {
  video: { name: string; rate: Rate } | null;
  audio: { name: string; channels: number | null } | null;
};

/** Segments `first` to `last`, of which the first one begins at `seconds` of the stream. */
export type SegmentRange = { first: number; last: number; seconds: number };

type SourceFile = NonNullable<FinishedRecording["source"]>;
/** Called before each write. Throws when the disk is full. */
type Admit = () => Promise<void>;
/** `withSource`: also write all tracks to one file, if there is space for it. */
export type FinishOptions = { admit: Admit; range?: SegmentRange | null; withSource?: boolean };

/**
 * Makes video on demand of the stream in the directory `live`, or of a part of it: writes its segments, as links, and
 * manifests to the directory `target`. The files in `live` stay as they are, because viewers still read them. Null when
 * there is no complete segment. Throws the error of the file system.
 */
export async function finishRecording(
  live: string,
  target: string,
  recorded: RecordedTracks,
  { admit, range = null, withSource = false }: FinishOptions,
): Promise<FinishedRecording | null> {
  await rm(target, { recursive: true, force: true });
  for (const track of [recorded.video, recorded.audio])
    if (track) await linkFiles(join(live, track.name), join(target, track.name), { range, admit });
  const read = async (name: string | undefined) =>
    name === undefined ? null : readWritten(target, name, { areOurs: true });
  const [video, audio] = await Promise.all([read(recorded.video?.name), read(recorded.audio?.name)]);
  if (!video && !audio) return null;
  const rate = recorded.video?.rate ?? null;
  const names = { manifest: encodingSpec.hls.manifest, dash: encodingSpec.dash.manifest };
  const channels = recorded.audio?.channels ?? 0;
  const packaged = await writeManifests({
    outDir: target,
    plan: {
      video: video && rate ? { rate } : null,
      audio: audio ? [{ name: audio.name, channels, surroundOf: null, track: { language: null } }] : [],
    },
    spec: encodingSpec,
    videos: video ? [video] : [],
    audios: audio ? [audio] : [],
    names,
    storyboard: null,
    areOurs: true,
    begins: range && range.first > 1 ? { number: range.first, seconds: range.seconds } : undefined,
  });
  const tracks = [video, audio].filter((track) => track !== null);
  const fromMs = Math.round((range?.seconds ?? 0) * 1000);
  const captions = await readCaptions(live, { fromMs, toMs: fromMs + Math.round(packaged.durationSeconds * 1000) });
  const source = withSource ? await sourceOf(target, tracks, admit) : null;
  return {
    ...packaged,
    source,
    captions,
    width: video?.init.width ?? null,
    height: video?.init.height ?? null,
    frameRate: packaged.renditions[0]?.frame_rate ?? null,
    manifest: names.manifest,
    dashManifest: names.dash,
  };
}

/** Null when there is no space for it: the recording plays without other renditions. */
async function sourceOf(target: string, tracks: Written[], admit: Admit): Promise<SourceFile | null> {
  const path = join(target, SOURCE);
  try {
    return { path: SOURCE, bytes: await writeSource(target, tracks, { path, admit }) };
  } catch {
    await rm(path, { force: true });
    return null;
  }
}

/** The same for the files that a process left when it was killed. */
export const recoverRecording = async (
  live: string,
  target: string,
  options: FinishOptions,
): Promise<FinishedRecording | null> => finishRecording(live, target, await recover(live), options);

async function linkFiles(
  from: string,
  to: string,
  { range, admit }: { range: SegmentRange | null; admit: Admit },
): Promise<void> {
  await mkdir(to, { recursive: true });
  const isIn = (number: number) => range === null || (number >= range.first && number <= range.last);
  const files = (await readdir(from)).filter(
    (file) => file === INIT_NAME || (SEGMENT_PATTERN.test(file) && isIn(Number.parseInt(file, 10))),
  );
  await mapBounded(files, { atOnce: AT_ONCE }, (file) =>
    // Not all file systems have hard links.
    link(join(from, file), join(to, file)).catch(async () => {
      await admit();
      await copyFile(join(from, file), join(to, file));
    }),
  );
}
