/** Languages of pages for viewers. */
const LANGUAGES = ["en", "de"] as const;
export type PageLanguage = (typeof LANGUAGES)[number];

const MAX_HEADER = 1000;

/** The language that a viewer prefers, by Accept-Language (RFC 9110, 12.5.4); English when it names none of ours. */
export function pageLanguage(headers: Headers): PageLanguage {
  const best = { language: "en" as PageLanguage, weight: 0 };
  for (const part of (headers.get("accept-language") ?? "").slice(0, MAX_HEADER).split(",")) {
    const [tag = "", ...parameters] = part.split(";").map((piece) => piece.trim().toLowerCase());
    const language = LANGUAGES.find((one) => tag === one || tag.startsWith(`${one}-`));
    const quality = parameters.find((each) => each.startsWith("q="))?.slice(2) ?? "1";
    const weight = /^(0(\.\d{0,3})?|1(\.0{0,3})?)$/.test(quality) ? Number(quality) : 0;
    if (language && weight > best.weight) Object.assign(best, { language, weight });
  }
  return best.language;
}
