const MAX_CHARACTERS = 35;
/** Language, script, region and variants (RFC 5646, 2.1). Extensions and private use say nothing about a subtitle. */
const SHAPE = /^[a-z]{2,3}(?:-[a-z]{4})?(?:-(?:[a-z]{2}|\d{3}))?(?:-(?:[a-z\d]{5,8}|\d[a-z\d]{3}))*$/i;

const known = {
  language: new Intl.DisplayNames("en", { type: "language", fallback: "none" }),
  region: new Intl.DisplayNames("en", { type: "region", fallback: "none" }),
  script: new Intl.DisplayNames("en", { type: "script", fallback: "none" }),
};

/** What its speakers call it: `Deutsch`, `português (Brasil)`; the tag where that is not known. */
export function ownName(tag: string): string {
  const name = new Intl.DisplayNames([tag, "en"], { type: "language" }).of(tag) ?? tag;
  return name.charAt(0).toLocaleUpperCase(tag) + name.slice(1);
}

/** Without script, region and variants; ISO 639's three letters become two where there are two (`eng` is `en`). */
export const primaryLanguage = (tag: string): string => new Intl.Locale(canonicalLanguage(tag) ?? "und").language;

/**
 * The canonical form of a BCP 47 tag (`EN-us` is `en-US`, `iw` is `he`), or null for what is none. Two letters,
 * scripts and regions must be ones that exist; of the thousands of three letters nobody has a list here.
 */
export function canonicalLanguage(tag: string): string | null {
  if (tag.length > MAX_CHARACTERS || !SHAPE.test(tag)) return null;
  try {
    const [canonical = ""] = Intl.getCanonicalLocales(tag);
    const { language, script, region } = new Intl.Locale(canonical);
    if (language.length === 2 && known.language.of(language) === undefined) return null;
    if (script !== undefined && known.script.of(script) === undefined) return null;
    if (region !== undefined && known.region.of(region) === undefined) return null;
    return canonical;
  } catch {
    return null;
  }
}
