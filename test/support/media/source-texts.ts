import { readTextTracks } from "#media/captions/read-text-tracks.ts";
import { encodingSpec } from "#media/encoding-spec.ts";
import { planEncode } from "#media/plan.ts";
import { probeSource } from "#media/timeline.ts";
import { warningsOf } from "#media/tracks.ts";
import { emptyFolder } from "../folder.ts";
import { cuesOf, type ReadCue } from "./source-captions.ts";
import { binaries } from "./sources.ts";

type ReadText = {
  number: number;
  codec: string;
  language: string | null;
  title: string | null;
  kind: string;
  isDefault: boolean;
  skippedCues: number;
  cues: ReadCue[];
};

/** The text tracks of a file, read as a worker reads them, with the messages of what is left out. */
export async function textsIn(
  path: string,
  { signal = new AbortController().signal }: { signal?: AbortSignal } = {},
): Promise<{ texts: ReadText[]; messages: string[] }> {
  const probe = await probeSource(path, binaries, { cwd: emptyFolder() });
  const { durationSeconds } = planEncode(probe, encodingSpec);
  const { startSeconds } = probe;
  const { tracks, warnings } = await readTextTracks(path, { startSeconds, durationSeconds, signal, onMove: () => {} });
  const texts = tracks.map(({ vtt, number, codec, language, title, kind, isDefault, skippedCues }) => ({
    ...{ number, codec, language, title, kind, isDefault, skippedCues },
    cues: cuesOf(vtt),
  }));
  return { texts, messages: [...warningsOf(probe), ...warnings].map(({ message }) => message) };
}
