import { copyFile, link, mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { mapBounded } from "../../lib/bounded.ts";
import { INIT_NAME, SEGMENT_PATTERN } from "../../media/arguments.ts";
import { encodingSpec } from "../../media/encoding-spec.ts";
import { writeManifests } from "../../media/manifests.ts";
import { readWritten } from "../../media/package.ts";
import { recover } from "../cmaf/recover.ts";
import type { Recording } from "../cmaf/types.ts";
import type { FinishedRecording } from "./messages.ts";

const AT_ONCE = 16;

/**
 * Makes video on demand of the recording in the directory `live`: writes its segments, as links, and manifests to the
 * directory `target`. The files in `live` stay as they are, because viewers still read them. Null when there is no complete
 * segment. Throws the error of the file system.
 */
export async function finishRecording(
  live: string,
  target: string,
  recording: Recording,
): Promise<FinishedRecording | null> {
  await rm(target, { recursive: true, force: true });
  for (const track of [recording.video, recording.audio])
    if (track) await linkFiles(join(live, track.name), join(target, track.name));
  const read = async (name: string | undefined) => (name === undefined ? null : readWritten(target, name));
  const [video, audio] = await Promise.all([read(recording.video?.name), read(recording.audio?.name)]);
  if (!video && !audio) return null;
  const rate = recording.video?.rate ?? null;
  const names = { manifest: encodingSpec.hls.manifest, dash: encodingSpec.dash.manifest };
  const channels = recording.audio?.channels ?? 0;
  const packaged = await writeManifests({
    outDir: target,
    plan: {
      video: video && rate ? { rate } : null,
      audio: audio ? [{ name: audio.name, isCopied: true, track: { language: null, channels } }] : [],
    },
    spec: encodingSpec,
    videos: video ? [video] : [],
    audios: audio ? [audio] : [],
    names,
    storyboard: null,
  });
  return {
    ...packaged,
    width: video?.init.width ?? null,
    height: video?.init.height ?? null,
    frameRate: packaged.renditions[0]?.frame_rate ?? null,
    manifest: names.manifest,
    dashManifest: names.dash,
  };
}

/** The same for the files that a process left when it was killed. */
export const recoverRecording = async (live: string, target: string): Promise<FinishedRecording | null> =>
  finishRecording(live, target, await recover(live));

async function linkFiles(from: string, to: string): Promise<void> {
  await mkdir(to, { recursive: true });
  const files = await readdir(from);
  const complete = files.filter((file) => file === INIT_NAME || SEGMENT_PATTERN.test(file));
  await mapBounded(complete, { atOnce: AT_ONCE }, (file) =>
    // Not all file systems have hard links.
    link(join(from, file), join(to, file)).catch(() => copyFile(join(from, file), join(to, file))),
  );
}
