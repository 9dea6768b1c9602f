import type { Config } from "../../config/load.ts";
import { command } from "./command.ts";
import { openai } from "./openai.ts";
import type { Transcriber } from "./transcriber.ts";

type Settings = Pick<
  Config,
  | "transcribe"
  | "transcribe_url"
  | "transcribe_key"
  | "transcribe_model"
  | "transcribe_timeout_seconds"
  | "transcribe_command"
>;

/** What the settings name; null when it is nothing, or it is not known where or what it is. */
export function configuredTranscriber(settings: Settings): Transcriber | null {
  const { transcribe: kind, transcribe_key: key, transcribe_model: model } = settings;
  if (kind === "command") return settings.transcribe_command ? command(settings.transcribe_command) : null;
  // With a key and no address the company is meant whose interface it is.
  const base = settings.transcribe_url ?? (key === undefined ? undefined : "https://api.openai.com");
  if (kind === "off" || base === undefined) return null;
  return openai({ base, key, model, timeoutMs: settings.transcribe_timeout_seconds * 1000 });
}
