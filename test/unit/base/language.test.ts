import { expect, test } from "vitest";
import {
  canonicalLanguage,
  englishName,
  languageOfName,
  ownName,
  primaryLanguage,
  spokenTag,
} from "#src/lib/base/language.ts";

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
  ["und", "und"],
  ["UND-us", "und-US"],
  ["art-lojban", "jbo"],
  ["en-x-forced", "en-x-forced"],
  ["ENG-us-X-Forced-TRACK9", "en-US-x-forced-track9"],
  ["und-x-cc1", "und-x-cc1"],
  ["de-1996-x-a-1", "de-1996-x-a-1"],
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
  "en-u-ca-buddhist-x-mine",
  "en-x",
  "en-x-",
  "en-x-abcdefghi",
  "en-x-é",
  "en-x-a_b",
  "xx-x-mine",
  `en-x-${"abcdefgh-".repeat(7)}a`,
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

test.each([
  ["de", "Deutsch", "German"],
  ["pt-BR", "Português (Brasil)", "Brazilian Portuguese"],
  ["en-x-forced", "English (forced)", "English (forced)"],
  ["de-CH-x-easy-1", "Schweizer Hochdeutsch (easy 1)", "Swiss High German (easy 1)"],
  ["tlh", "Klingon", "Klingon"],
  ["qaa", "Qaa", null],
  ["qaa-x-mine", "Qaa-x-mine", null],
])("%s is called %j, and %j in English", (tag, own, english) => {
  expect(ownName(tag)).toBe(own);
  expect(englishName(tag)).toBe(english);
});

test("private subtags are no part of what is spoken", () => {
  expect(["en", "en-x-forced", "sr-Latn-RS-x-a-x-b"].map(spokenTag)).toEqual(["en", "en", "sr-Latn-RS"]);
  expect(["eng-US-x-forced", "und", "und-x-cc1", "nonsense"].map(primaryLanguage)).toEqual(["en", "und", "und", "und"]);
});
