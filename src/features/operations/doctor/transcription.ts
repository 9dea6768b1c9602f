import type { App } from "#app.ts";
import { envName } from "#platform/config/settings.ts";
import { configuredTranscriber } from "#platform/outbound/transcribe/configured.ts";
import { installedModels, selectedModel } from "#platform/outbound/transcribe/whisper/store.ts";
import { type Finding, runCheck } from "./finding.ts";

/** Checks that captions can be created from speech, where a service is set. */
export async function transcriptionWorks({ config }: App): Promise<Finding[]> {
  const { transcribe, data_dir, whisper_model } = config;
  if (transcribe === "off") return [];
  const check = await runCheck("transcription", async () => {
    if (transcribe === "whisper") {
      const model = selectedModel(data_dir, whisper_model);
      if (model) return `whisper with the model ${model.name}`;
      const installed = installedModels(data_dir).map(({ name }) => name);
      const others = installed.length > 0 ? `, or set VODBOX_WHISPER_MODEL to ${installed.join(" or ")}` : "";
      throw new Error(
        `no speech model${whisper_model ? ` ${whisper_model}` : ""} is installed: run \`vodbox captions install ${whisper_model ?? "small"}\`${others}`,
      );
    }
    const { missing } = await configuredTranscriber(config);
    if (missing.length > 0) throw new Error(`set ${missing.map(envName).join(" or ")}`);
    return transcribe;
  });
  return [check];
}
