import { expect, test } from "vitest";
import { canonicalLanguage, languageOfName } from "#src/lib/base/language.ts";

test.each([
  ["en", "en"],
  ["EN-us", "en-US"],
  ["pt-BR", "pt-BR"],
  ["zh-hant", "zh-Hant"],
  ["sr-latn-rs", "sr-Latn-RS"],
  ["es-419", "es-419"],
  ["de-1996", "de-1996"],
  ["ca-valencia", "ca-valencia"],
  ["iw", "he"],
  ["eng", "en"],
  ["tlh", "tlh"],
  ["mul", "mul"],
  ["art-lojban", "jbo"],
])("%s is %s", (tag, canonical) => {
  expect(canonicalLanguage(tag)).toBe(canonical);
});

test.each([
  "",
  " ",
  "e",
  "xx",
  "xx-",
  "-en",
  "en-",
  "en_US",
  "en us",
  "english",
  "klingon",
  "en-XX",
  "en-Abcd",
  "en-US-US",
  "not-a-language",
  "i-klingon",
  "x-private",
  "en-u-ca-buddhist",
  "en-x-mine",
  "en-1996-1996",
  "root",
  "en\0",
  "ｅｎ",
  "en\n",
  `en-${"abcde-".repeat(6)}abcde`,
])("%j is not a language", (tag) => {
  expect(canonicalLanguage(tag)).toBeNull();
});

test.each([
  ["english", "en"],
  ["German", "de"],
  ["mandarin", "zh"],
  ["Haitian Creole", "ht"],
  ["cantonese", "yue"],
  ["klingon", null],
  ["", null],
])("%j, as speech recognition names it, is %j", (name, tag) => {
  expect(languageOfName(name)).toBe(tag);
});
