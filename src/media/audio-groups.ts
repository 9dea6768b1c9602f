import type { Written } from "./package.ts";
import type { PlannedAudio } from "./plan.ts";

/** The audio renditions among which a player chooses; each variant of a master playlist refers to one group. */
export type AudioGroup = { id: string; audios: Written[] };

type Planned = { readonly audio: readonly Pick<PlannedAudio, "name" | "surroundOf">[] };

/**
 * Stereo, which every player plays, and 5.1 if there is any. Groups have the same tracks in the same order (RFC 8216,
 * 4.3.4.1.1), so the second one has the stereo rendition of a track that has no 5.1. Without audio the only one is empty.
 */
export function audioGroups(plan: Planned, audios: readonly Written[], id: string): [AudioGroup, ...AudioGroup[]] {
  const stereo = audios.filter((one) => surroundOf(plan, one) === null);
  const first = { id, audios: stereo };
  if (stereo.length === audios.length) return [first];
  const surround = new Map(audios.map((one) => [surroundOf(plan, one), one]));
  return [first, { id: `${id}-surround`, audios: stereo.map((one) => surround.get(one.name) ?? one) }];
}

/** The name of the stereo rendition of the same track; null for a rendition that is not a 5.1 one. */
export const surroundOf = (plan: Planned, { name }: Pick<Written, "name">): string | null =>
  plan.audio.find((one) => one.name === name)?.surroundOf ?? null;
