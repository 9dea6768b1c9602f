import { eq, gt } from "drizzle-orm";
import { LRUCache } from "lru-cache";
import { type App, forApp } from "#app.ts";
import { HttpError } from "#lib/base";
import { configuredTranscriber } from "#platform/outbound/transcribe/configured.ts";
import { selectedModel } from "#platform/outbound/transcribe/whisper/store.ts";
import type { Db } from "#storage/db/open.ts";
import { workers } from "#storage/db/schema.ts";

/** A worker that waits for captions asks again every 20 seconds, and one that has some sends heartbeats. */
const SILENT_MS = 120_000;
const NOTED_EVERY_MS = 10_000;
const MAX_WORKERS = 1000;

const noted = forApp(() => new LRUCache<string, number>({ max: MAX_WORKERS }));

/** Records that a worker, which `noteWorker` has recorded, can transcribe; at most once in ten seconds for each. */
export async function noteTranscriber(app: App, workerId: string | null | undefined): Promise<void> {
  if (!workerId) return;
  const now = app.clock.now();
  const known = noted(app);
  if (Math.abs(now - (known.get(workerId) ?? 0)) < NOTED_EVERY_MS) return;
  known.set(workerId, now);
  await app.write(async (tx) => {
    await tx.update(workers).set({ transcribesAt: now }).where(eq(workers.workerId, workerId));
  });
}

/** Whether the server has the model that workers recognize speech with. */
export const hasSpeechModel = ({ config }: App): boolean =>
  selectedModel(config.data_dir, config.whisper_model) !== null;

const hasTranscriber = async (db: Db, now: number): Promise<boolean> =>
  (await db
    .select({ id: workers.id })
    .from(workers)
    .where(gt(workers.transcribesAt, now - SILENT_MS))
    .limit(1)
    .get()) !== undefined;

/** Whether the server's own settings name a transcriber, or a worker has one. */
export const isTranscriptionConfigured = async (app: App): Promise<boolean> =>
  (await configuredTranscriber(app.config)).transcriber !== null || (await hasTranscriber(app.db, app.clock.now()));

/** Throws 503 `transcription_not_configured`. */
export async function requireTranscription(app: App): Promise<void> {
  if (await isTranscriptionConfigured(app)) return;
  const lacksModel = app.config.transcribe === "whisper";
  throw new HttpError(
    503,
    "transcription_not_configured",
    lacksModel
      ? "No speech model is installed: run `vodbox captions install small` on this server."
      : "Transcription is not configured: set VODBOX_TRANSCRIBE on this server, or start a worker that has a transcriber.",
  );
}
