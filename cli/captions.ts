import type { Command } from "commander";
import { UserError } from "#lib/base";
import { CATALOG } from "#platform/outbound/transcribe/whisper/catalog.ts";
import { ModelUnavailable } from "#platform/outbound/transcribe/whisper/download.ts";
import { installModel } from "#platform/outbound/transcribe/whisper/install.ts";
import { installedModels } from "#platform/outbound/transcribe/whisper/store.ts";
import { type Column, line, printJson, printList } from "./print.ts";
import { showProgress } from "./progress.ts";
import { settingsOf, wantsJson } from "./settings.ts";
import { onStopSignal } from "./signals.ts";
import { amount } from "./units.ts";

type Row = { name: string; bytes: number; sha256: string; installed: boolean };

const COLUMNS: Column<Row>[] = [
  ["NAME", ({ name }) => name],
  ["SIZE", ({ bytes }) => amount(bytes)],
  ["INSTALLED", ({ installed }) => (installed ? "yes" : "")],
];

/** The models of the catalog, and custom ones, by size. */
export function listModels(command: Command): void {
  const { data_dir } = settingsOf(command);
  const installed = installedModels(data_dir);
  const has = (sha256: string) => installed.some((model) => model.sha256 === sha256);
  const custom = installed.filter(({ sha256 }) => !CATALOG.some((model) => model.sha256 === sha256));
  const rows: Row[] = [
    ...CATALOG.map((model) => ({ ...model, installed: has(model.sha256) })),
    ...custom.map(({ name, bytes, sha256 }) => ({ name, bytes, sha256, installed: true })),
  ];
  printList(
    rows.sort((one, other) => one.bytes - other.bytes),
    COLUMNS,
    wantsJson(command),
  );
}

/** Downloads a model into the data directory, or copies it there; a running server uses it with the next job. */
export async function installCommand(name: string, command: Command): Promise<void> {
  const config = settingsOf(command);
  const { file } = command.opts<{ file?: string }>();
  const stop = new AbortController();
  onStopSignal(async () => stop.abort());
  const progress = showProgress(name);
  try {
    const model = await installModel({
      name,
      dataDir: config.data_dir,
      modelsUrl: config.whisper_models_url,
      file,
      minFreeBytes: config.min_free_bytes,
      signal: stop.signal,
      onProgress: (fraction) => progress.update(fraction),
    });
    progress.done();
    if (wantsJson(command)) printJson({ name: model.name, bytes: model.bytes, sha256: model.sha256, installed: true });
    else line(`${model.name} is installed (${amount(model.bytes)}).`);
    if (config.transcribe !== "whisper" && !wantsJson(command))
      line("Set VODBOX_TRANSCRIBE=whisper for the server to use it.");
    process.exit(0);
  } catch (error) {
    progress.done(false);
    if (stop.signal.aborted) throw new UserError("Stopped; run the command again to continue.");
    if (error instanceof ModelUnavailable) throw new UserError(error.message);
    throw error;
  }
}
