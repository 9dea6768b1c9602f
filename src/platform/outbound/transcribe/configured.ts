import type { Config } from "#platform/config/load.ts";
import type { SettingName } from "#platform/config/settings.ts";
import type { SpeechModels, Transcriber, TranscriptionService } from "./transcriber.ts";

/** The service of each choice of the setting `transcribe`. Its file is imported on first use. */
const SERVICES: Record<Exclude<Config["transcribe"], "off">, () => Promise<TranscriptionService>> = {
  whisper: async () => (await import("./whisper/service.ts")).whisperService,
  openai: async () => (await import("./openai.ts")).openaiService,
  command: async () => (await import("./command.ts")).commandService,
};

type Configured = {
  /** Null when no service is set, or one of its settings is missing. */
  transcriber: Transcriber | null;
  /** The settings that would complete it; empty when nothing is missing. */
  missing: readonly SettingName[];
};

/**
 * The transcription service of the settings. Without `models`, as on the server, `whisper` needs an installed model; a worker
 * asks for one when it needs it, so that one which is installed later is used without a restart.
 */
export async function configuredTranscriber(config: Config, models?: SpeechModels): Promise<Configured> {
  if (config.transcribe === "off") return { transcriber: null, missing: [] };
  const { open, needs } = await SERVICES[config.transcribe]();
  const transcriber = open(config, models);
  return { transcriber, missing: transcriber ? [] : needs };
}
