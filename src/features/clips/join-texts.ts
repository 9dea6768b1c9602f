import type { App } from "#app.ts";
import { newDeliveredPrefix } from "#model/object-keys.ts";
import { storageOf } from "#platform/http/storage.ts";
import type { AssetRow } from "#storage/db/schema.ts";
import { MAX_SUBTITLE_BYTES } from "../subtitles/content.ts";
import { type CutSubtitle, type CutTrack, cutSubtitles, cutTracks, MAX_CUT_TRACKS } from "../subtitles/cut-texts.ts";
import { type StoredText, storeTextUnder } from "../subtitles/store.ts";
import { MAX_CUE_BYTES, MAX_CUES } from "../tracks/timed/schema.ts";

/** The texts of a joined asset: each language and each track once, with the cues of all parts that have it. */
export type JoinedTexts = {
  subtitles: { row: CutSubtitle["row"]; stored: StoredText; bytes: number }[];
  tracks: CutTrack[];
};

const MAX_SUBTITLES = 20;

type Options = { signal: AbortSignal; impossible: (reason: string) => never };

/**
 * Moves the subtitles and tracks of each part to its position. Throws 422 `join_not_possible` where the joined ones exceed
 * a limit.
 */
export async function joinTexts(
  app: App,
  parts: readonly AssetRow[],
  { signal, impossible }: Options,
): Promise<JoinedTexts> {
  const texts = new Map<string, { row: CutSubtitle["row"]; text: string }>();
  const tracks = new Map<string, CutTrack>();
  let seconds = 0;
  for (const part of parts) {
    const offsetMs = Math.round(seconds * 1000);
    // A range that begins before the part moves its cues to later.
    const range = { startMs: -offsetMs, endMs: Math.round(part.durationSeconds * 1000) };
    seconds += part.durationSeconds;
    for (const { row, text } of await cutSubtitles(app, storageOf(app), { asset: part, range, signal })) {
      const before = texts.get(row.language);
      const joined = before ? `${before.text.trimEnd()}\n\n${cuesOf(text)}` : text;
      if (Buffer.byteLength(joined) > MAX_SUBTITLE_BYTES) impossible(`the subtitles in ${row.language} are too large`);
      texts.set(row.language, { row: before?.row ?? row, text: joined });
    }
    for (const track of await cutTracks(app, part.id, range)) {
      const key = JSON.stringify([track.kind, track.name]);
      const cues = track.cues.map((cue, index) =>
        // The last chapter of a part ends with it.
        track.kind === "chapter" && cue.end_ms === undefined && index === track.cues.length - 1
          ? { ...cue, end_ms: Math.round(seconds * 1000) }
          : cue,
      );
      const all = [...(tracks.get(key)?.cues ?? []), ...cues];
      if (all.length > MAX_CUES || Buffer.byteLength(JSON.stringify(all)) > MAX_CUE_BYTES)
        impossible(`the track ${track.name} has too many cues`);
      tracks.set(key, { ...(tracks.get(key) ?? track), cues: all });
    }
  }
  if (texts.size > MAX_SUBTITLES) impossible(`they have over ${MAX_SUBTITLES} languages of subtitles together`);
  if (tracks.size > MAX_CUT_TRACKS) impossible(`they have over ${MAX_CUT_TRACKS} tracks together`);
  const [first] = parts as [AssetRow];
  const prefix = newDeliveredPrefix(first.tenantId);
  const subtitles: JoinedTexts["subtitles"] = [];
  for (const { row, text } of texts.values()) {
    const stored = await storeTextUnder(app, prefix, { text, warnings: [] });
    subtitles.push({ row, stored, bytes: stored.bytes });
  }
  return { subtitles, tracks: [...tracks.values()] };
}

/** The cues of a text that `cutSubtitles` has written: without its header, styles and regions. */
function cuesOf(text: string): string {
  const blocks = text.split("\n\n");
  return blocks.slice(blocks.findIndex((block) => block.includes("-->"))).join("\n\n");
}
