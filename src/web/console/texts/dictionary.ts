export type Language = "en" | "de";

/** Texts by name, in every language. */
export type Dictionary<Texts extends Record<string, string>> = Record<Language, Texts>;

/** The texts of a page. Names of buttons, fields and links are relied on by scripts that drive the console. */
export const dictionary = <const Name extends string>(
  en: Record<Name, string>,
  de: Record<NoInfer<Name>, string>,
): Dictionary<Record<Name, string>> => ({ en, de });
