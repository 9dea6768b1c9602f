/** Names that services give to languages and scripts beside those of BCP 47. */
const ALSO: Record<string, readonly string[]> = {
  "zh-Hant": ["zt", "zh-TW"],
  "zh-Hans": ["zh-CN"],
  nb: ["no"],
  no: ["nb"],
};

/** `eng`, `en_US` and `EN-us` are what BCP 47 makes of them: `en`, `en-US`. */
function canonical(code: string): string | null {
  try {
    return Intl.getCanonicalLocales(code.replaceAll("_", "-"))[0] ?? null;
  } catch {
    return null;
  }
}

/** A tag and what may stand for it, the closest first: `zh-TW`, `zh-Hant`, `zh`. */
function candidates(tag: string): string[] {
  const locale = new Intl.Locale(tag);
  const { language, script } = locale.maximize();
  const withScript = `${language}-${script}`;
  const region = locale.region && `${language}-${locale.region}`;
  return [tag, region, withScript, language].flatMap((each) => (each ? [each, ...(ALSO[each] ?? [])] : []));
}

/** The service's own name, of those that it knows, for a language; null when it has none. */
export function codeAmong(known: Iterable<string>, tag: string): string | null {
  const names = new Map<string, string>();
  for (const code of known) names.set(canonical(code) ?? code, names.get(canonical(code) ?? code) ?? code);
  const found = candidates(tag).find((each) => names.has(canonical(each) ?? each));
  return found === undefined ? null : (names.get(canonical(found) ?? found) as string);
}

/** Language alone, for services that do not say what they know. */
export const languageOf = (tag: string): string => new Intl.Locale(tag).language;
