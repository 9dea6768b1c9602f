import { HttpError } from "#lib/base";
import type { SubtitleRow } from "#storage/db/schema.ts";

const MAX_TRACKS = 20;

/** False when the asset already has a track of the language. */
export const hasRoom = (tracks: readonly SubtitleRow[], language: string): boolean =>
  tracks.length < MAX_TRACKS || tracks.some((track) => track.language === language);

/** Throws 422 `subtitle_limit_reached` at the limit. */
export function requireRoom(tracks: readonly SubtitleRow[], language: string): void {
  if (hasRoom(tracks, language)) return;
  const message = `The asset already has ${MAX_TRACKS} subtitles; delete one first.`;
  throw new HttpError(422, "subtitle_limit_reached", message);
}
