import type { Config } from "#platform/config/load.ts";
import { serviceAt, type TranslationService } from "./service.ts";
import type { Translator } from "./translator.ts";

/** The service of each choice of the setting `translate`. Its file is imported on first use. */
const SERVICES: Record<Exclude<Config["translate"], "off">, () => Promise<TranslationService>> = {
  libretranslate: async () => (await import("./libretranslate.ts")).libreTranslate,
  apertium: async () => (await import("./apertium.ts")).apertium,
  deepl: async () => (await import("./deepl.ts")).deepl,
  openai: async () => (await import("./openai.ts")).openai,
};

/** The translation service of the settings; null when none is set, or its URL is unknown. */
export async function configuredTranslator(config: Config): Promise<Translator | null> {
  const { translate, translate_url, translate_key: key, translate_timeout_seconds: seconds } = config;
  if (translate === "off") return null;
  const { publicUrl, open } = await SERVICES[translate]();
  const url = translate_url ?? (key === undefined ? undefined : publicUrl?.(key));
  if (url === undefined) return null;
  return open(serviceAt(url, seconds * 1000), config);
}
