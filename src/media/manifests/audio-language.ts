import { englishName } from "#lib/base";
import { STEREO_CHANNELS } from "#protocol/audio-renditions.ts";
import type { Written } from "../package.ts";
import type { ManifestPlan } from "./renditions.ts";

export const channelsOf = (plan: ManifestPlan, one: Written): number =>
  plan.audio.find(({ name }) => name === one.name)?.channels ?? STEREO_CHANNELS;

/** A canonical tag (RFC 5646); null where the source states none, or none that is valid. */
export const languageOf = (plan: ManifestPlan, one: Written) => {
  const language = plan.audio.find(({ name }) => name === one.name)?.track.language;
  try {
    // RFC 5646 uses "en" where containers have "eng".
    return language ? (Intl.getCanonicalLocales(language)[0] ?? null) : null;
  } catch {
    return null;
  }
};

/** A name for people, in English; `index` from 0. */
export function titleOf(language: string | null, index: number): string {
  return (language && englishName(language)) || `Audio ${index + 1}`;
}
