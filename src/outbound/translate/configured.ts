import type { Config } from "../../config/load.ts";
import { apertium } from "./apertium.ts";
import { deepl, deeplAddress } from "./deepl.ts";
import { libreTranslate } from "./libretranslate.ts";
import { openai } from "./openai.ts";
import { serviceAt } from "./service.ts";
import type { Translator } from "./translator.ts";

type Settings = Pick<
  Config,
  "translate" | "translate_url" | "translate_key" | "translate_model" | "translate_timeout_seconds"
>;

/** The service of the settings; null when there is none, or it is not known where it is. */
export function configuredTranslator(settings: Settings): Translator | null {
  const { translate: kind, translate_key: key, translate_model: model } = settings;
  const address = settings.translate_url ?? ownAddress(kind, key);
  if (kind === "off" || address === undefined) return null;
  const ask = serviceAt(address, settings.translate_timeout_seconds * 1000);
  if (kind === "libretranslate") return libreTranslate(ask, key);
  if (kind === "apertium") return apertium(ask, key);
  if (kind === "deepl") return deepl(ask, key);
  return openai(ask, key, model);
}

/** The two that are one company's service have an address by themselves; with a key it is meant. */
function ownAddress(kind: Settings["translate"], key: string | undefined): string | undefined {
  if (key === undefined) return undefined;
  if (kind === "deepl") return deeplAddress(key);
  return kind === "openai" ? "https://api.openai.com" : undefined;
}
