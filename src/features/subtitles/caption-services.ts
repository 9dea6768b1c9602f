import type { SubtitleRow } from "#storage/db/schema.ts";

/**
 * Language and label of the closed captions of a service, of which the language is not known: the first ones are `und`, and others
 * have their service in their tag. `tracks`: those that the asset has.
 */
export function trackOfService(
  service: string,
  tracks: readonly Pick<SubtitleRow, "language">[],
): { language: string; label: string; source: "upload"; role: "caption" } {
  const isTaken = tracks.some(({ language }) => language === "und");
  const language = isTaken ? `und-x-${service}` : "und";
  return { language, label: service.toUpperCase(), source: "upload", role: "caption" };
}
