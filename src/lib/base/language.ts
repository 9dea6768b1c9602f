/** The longest tag that is accepted. */
export const MAX_LANGUAGE_CHARACTERS = 64;
/** Language, script, region, variants, and private use behind `x` (RFC 5646, 2.1). Extensions do not matter for subtitles and audio. */
const SHAPE =
  /^[a-z]{2,3}(?:-[a-z]{4})?(?:-(?:[a-z]{2}|\d{3}))?(?:-(?:[a-z\d]{5,8}|\d[a-z\d]{3}))*(?:-x(?:-[a-z\d]{1,8})+)?$/i;

type Subtag = "language" | "script" | "region";
/** Created on first use: Node.js takes 9 ms for each, a tenth of a start. */
const names = new Map<Subtag, Intl.DisplayNames>();

function isKnown(type: Subtag, code: string): boolean {
  const known = names.get(type) ?? new Intl.DisplayNames("en", { type, fallback: "none" });
  names.set(type, known);
  return known.of(code) !== undefined;
}

/**
 * A tag without its private subtags (RFC 5646, 2.2.7), by which tracks of one language differ.
 * @example
 * spokenTag("en-US-x-forced") // => "en-US"
 */
export const spokenTag = (tag: string): string => tag.split(/-x-/i, 1)[0] ?? tag;

/** The language's own name: `Deutsch`, `Português (Brasil)`, `English (forced)` of `en-x-forced`; the tag when it is unknown. */
export function ownName(tag: string): string {
  const spoken = spokenTag(tag);
  const name = nameOf(tag, [spoken, "en"]) ?? tag;
  return name.charAt(0).toLocaleUpperCase(spoken) + name.slice(1);
}

/** The language's English name: `German`, `English (forced)` of `en-x-forced`; null when it is unknown, and for what is no tag. */
export const englishName = (tag: string): string | null => nameOf(tag, ["en"]);

/** CLDR has no names of tags with private subtags, which are shown as they are. */
function nameOf(tag: string, inLanguages: readonly string[]): string | null {
  const spoken = spokenTag(tag);
  const own = tag.slice(spoken.length + 3).replaceAll("-", " ");
  try {
    // CLDR has no name of it.
    const name =
      spoken === "und"
        ? "Unknown language"
        : new Intl.DisplayNames(inLanguages, { type: "language", fallback: "none" }).of(spoken);
    return name === undefined ? null : own === "" ? name : `${name} (${own})`;
  } catch {
    return null;
  }
}

/**
 * Without script, region and variants; three-letter codes of ISO 639 become two-letter ones where these exist (`eng` is
 * `en`).
 */
export const primaryLanguage = (tag: string): string => subtagsOf(canonicalLanguage(tag) ?? "und").language;

/** V8 has no language of `und`, nor of `und-x-…`. */
function subtagsOf(tag: string): { language: string; script: string | undefined; region: string | undefined } {
  const locale: Partial<Intl.Locale> = new Intl.Locale(spokenTag(tag));
  return { language: locale.language ?? "und", script: locale.script, region: locale.region };
}

/**
 * The canonical form of a BCP 47 tag (`EN-us` is `en-US`, `iw` is `he`), or null for an invalid one. Two-letter
 * languages, scripts and regions must exist; of the thousands of three-letter languages there is no list here. Private subtags
 * may follow (`en-x-forced`); extensions are refused.
 * @example
 * canonicalLanguage("EN-us") // => "en-US"
 * canonicalLanguage("not a tag") // => null
 */
export function canonicalLanguage(tag: string): string | null {
  if (tag.length > MAX_LANGUAGE_CHARACTERS || !SHAPE.test(tag)) return null;
  try {
    const [canonical = ""] = Intl.getCanonicalLocales(tag);
    const { language, script, region } = subtagsOf(canonical);
    if (language.length === 2 && !isKnown("language", language)) return null;
    if (script !== undefined && !isKnown("script", script)) return null;
    if (region !== undefined && !isKnown("region", region)) return null;
    return canonical;
  } catch {
    return null;
  }
}

/** Names that speech recognition uses and CLDR has not. */
const OTHER_NAMES: Record<string, string> = {
  castilian: "es",
  flemish: "nl",
  "haitian creole": "ht",
  haitian: "ht",
  letzeburgesch: "lb",
  mandarin: "zh",
  moldavian: "ro",
  moldovan: "ro",
  myanmar: "my",
  nynorsk: "nn",
  panjabi: "pa",
  pushto: "ps",
  sinhalese: "si",
  tagalog: "tl",
  valencian: "ca",
};
const LETTERS = "abcdefghijklmnopqrstuvwxyz";
let byName: Map<string, string> | null = null;

/** The tag of a language by its English name in any case, as speech recognition reports it: `english` is `en`. Null for others. */
export function languageOfName(name: string): string | null {
  if (!byName) {
    byName = new Map();
    const english = new Intl.DisplayNames("en", { type: "language", fallback: "none" });
    const codes = [...LETTERS].flatMap((first) => [...LETTERS].map((second) => first + second));
    for (const code of [...codes, "yue", "haw"]) {
      const own = english.of(code)?.toLowerCase();
      if (own !== undefined && Intl.getCanonicalLocales(code)[0] === code) byName.set(own, code);
    }
  }
  const wanted = name.trim().toLowerCase();
  return byName.get(wanted) ?? OTHER_NAMES[wanted] ?? null;
}
