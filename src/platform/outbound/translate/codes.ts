import { primaryLanguage, spokenTag } from "#lib/base";

/** Names that services use for languages and scripts in addition to those of BCP 47. */
const ALSO: Record<string, readonly string[]> = {
  "zh-Hant": ["zt", "zh-TW"],
  "zh-Hans": ["zh-CN"],
  nb: ["no"],
  no: ["nb"],
};

/** `eng`, `en_US` and `EN-us` as BCP 47 tags: `en`, `en-US`. */
function canonical(code: string): string | null {
  try {
    return Intl.getCanonicalLocales(code.replaceAll("_", "-"))[0] ?? null;
  } catch {
    return null;
  }
}

/** A tag and its fallbacks, closest first: `zh-TW`, `zh-Hant`, `zh`. */
function candidates(tag: string): string[] {
  const locale = new Intl.Locale(spokenTag(tag));
  const { language, script } = locale.maximize();
  const withScript = `${language}-${script}`;
  const region = locale.region && `${language}-${locale.region}`;
  return [tag, region, withScript, language].flatMap((each) => (each ? [each, ...(ALSO[each] ?? [])] : []));
}

/** The service's name for a language, among those it supports; null when it has none. */
export function codeAmong(known: Iterable<string>, tag: string): string | null {
  const names = new Map<string, string>();
  for (const code of known) names.set(canonical(code) ?? code, names.get(canonical(code) ?? code) ?? code);
  const match = candidates(tag).find((each) => names.has(canonical(each) ?? each));
  return match === undefined ? null : (names.get(canonical(match) ?? match) as string);
}

/** Language only, for services that do not list what they support. */
export const languageOf = primaryLanguage;
