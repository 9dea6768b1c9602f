import { primaryLanguage } from "#lib/base";

/** The languages of the multilingual models, as whisper.cpp names them (g_lang in its src/whisper.cpp). */
const CODES = new Set(
  (
    "en zh de es ru ko fr ja pt tr pl ca nl ar sv it id hi fi vi he uk el ms cs ro da hu ta no th ur hr bg lt la mi ml " +
    "cy sk te fa lv bn sr az sl kn et mk br eu is hy ne mn bs kk sq sw gl mr pa si km sn yo so af oc ka be tg sd gu " +
    "am yi lo uz fo ht ps tk nn mt sa lb my bo tl mg as tt haw ln ha ba jw su yue"
  ).split(" "),
);

/** Names that differ from those of BCP 47. */
const TO_WHISPER: Record<string, string> = { jv: "jw", nb: "no", fil: "tl", iw: "he", in: "id", ji: "yi" };
const FROM_WHISPER: Record<string, string> = { jw: "jv", tl: "fil" };

/** The library's name of a BCP 47 tag; null when the models do not know the language. */
export function whisperLanguage(tag: string): string | null {
  const primary = primaryLanguage(tag).toLowerCase();
  const code = TO_WHISPER[primary] ?? primary;
  return CODES.has(code) ? code : null;
}

/** The BCP 47 tag of the library's name. */
export const languageTag = (code: string): string => FROM_WHISPER[code] ?? code;
