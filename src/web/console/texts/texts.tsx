import { type ComponentChildren, createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import { remembered } from "../remembered.ts";
import { common } from "./common.ts";
import type { Dictionary, Language } from "./dictionary.ts";

export const LANGUAGES: Record<Language, string> = { en: "English", de: "Deutsch" };
export const isLanguage = (value: string | null): value is Language =>
  value !== null && Object.hasOwn(LANGUAGES, value);

/** The reader's choice, else the first of the browser's languages that there is. */
function firstLanguage(): Language {
  const chosen = remembered.language.get();
  if (isLanguage(chosen)) return chosen;
  const known = navigator.languages.map((tag) => tag.slice(0, 2)).find(isLanguage);
  return known ?? "en";
}

type Value = { language: Language; choose(language: Language): void };
const LanguageContext = createContext<Value>({ language: "en", choose() {} });

export function LanguageProvider({ children }: { children: ComponentChildren }) {
  const [language, setLanguage] = useState(firstLanguage);
  useEffect(() => {
    document.documentElement.lang = language;
  }, [language]);
  const choose = (next: Language) => {
    remembered.language.set(next);
    setLanguage(next);
  };
  return <LanguageContext.Provider value={{ language, choose }}>{children}</LanguageContext.Provider>;
}

export const useLanguage = () => useContext(LanguageContext);

/** The name of a text that every page has. */
export type CommonText = keyof typeof common.en;
type NoTexts = Record<never, string>;

/** What a text is filled in with: the value of each `{name}` in it. */
type Values = Record<string, string | number>;

/**
 * The function that returns a text in the reader's language: one of `own`, else one that every page has. Values are
 * inserted as they are; a name that looks like a placeholder or a pattern of `String.replace` is not replaced again.
 */
export function useTexts<Own extends Record<string, string> = NoTexts>(own?: Dictionary<Own>) {
  const { language } = useLanguage();
  const texts = { ...common[language], ...own?.[language] } as Record<string, string>;
  return (name: CommonText | (keyof Own & string), values?: Values): string => {
    const text = texts[name] as string;
    return values ? text.replace(/\{(\w+)\}/g, (placeholder, key: string) => String(values[key] ?? placeholder)) : text;
  };
}
