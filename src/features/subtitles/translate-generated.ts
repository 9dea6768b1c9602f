import { and, asc, eq, isNotNull, lte } from "drizzle-orm";
import type { App } from "#app.ts";
import { HttpError, ownName, setInterval } from "#lib/base";
import type { Db } from "#storage/db/open.ts";
import {
  type AssetRow,
  assets,
  type CaptionJobRow,
  type CaptionTranslation,
  captionJobs,
  type SubtitleRow,
  subtitles,
} from "#storage/db/schema.ts";
import { failWaiting } from "./pending.ts";
import { subtitlesOf } from "./queries.ts";
import { hasRoom } from "./room.ts";
import { addSubtitle, type StoredText, storeText } from "./store.ts";
import { translatedLabel, translatedText } from "./translate.ts";

/*
 * Translations of generated captions: rows before the response, made by a scheduled task one after another. The transaction that
 * publishes one also notes that it is done: after a crash in between, it is translated again.
 */

/** Then another process may try; a claim is renewed while it is in use. */
const CLAIM_MS = 30_000;
const RENEW_MS = 10_000;
const DELAYS_MS = [10_000, 60_000, 300_000];
/** Codes of errors that pass. */
const PASSING = new Set(["translation_failed", "rate_limited", "busy"]);

type Work = { job: CaptionJobRow; subtitle: SubtitleRow; asset: AssetRow; language: string };
type Fault = { code: string; message: string };

/** Makes all translations that are due. */
export async function translateCaptions(app: App): Promise<void> {
  while (!app.stopping.aborted) {
    const work = await claimNext(app);
    if (work === null) return;
    if (work !== "skipped") await translate(app, work);
  }
}

/** The first translation of the first job that is due; `skipped`: that job had none. */
async function claimNext(app: App): Promise<Work | "skipped" | null> {
  const due = () => lte(captionJobs.translateAt, app.clock.now());
  const any = await app.db.select({ id: captionJobs.id }).from(captionJobs).where(due()).limit(1).get();
  if (!any) return null;
  return app.write(async (tx) => {
    const job = await tx.select().from(captionJobs).where(due()).orderBy(asc(captionJobs.translateAt)).limit(1).get();
    if (!job) return null;
    const next = job.translations.find(({ status }) => status === "pending");
    const subtitle = await tx.select().from(subtitles).where(eq(subtitles.id, job.subtitleId)).get();
    const asset = await tx.select().from(assets).where(eq(assets.id, job.assetId)).get();
    const isReady = next && subtitle?.status === "ready" && asset;
    const translateAt = isReady ? app.clock.now() + CLAIM_MS : null;
    await tx.update(captionJobs).set({ translateAt }).where(eq(captionJobs.id, job.id));
    return isReady ? { job, subtitle, asset, language: next.language } : "skipped";
  });
}

async function translate(app: App, work: Work): Promise<void> {
  const { subtitle, asset, language } = work;
  const renewal = setInterval(() => void claimUntil(app, work.job, CLAIM_MS).catch(() => {}), RENEW_MS);
  try {
    const text = await translatedText(app, subtitle, language, new AbortController().signal);
    const stored = await storeText(app, asset, { text, warnings: [] });
    await app.write((tx) => publish(tx, app, work, stored));
  } catch (error) {
    // The server stops: the claim ends, and another process continues.
    if (app.stopping.aborted) return claimUntil(app, work.job, 0);
    if (!(error instanceof HttpError))
      app.log.error({ err: error, subtitle_id: subtitle.id, target: language }, "captions could not be translated");
    const fault =
      error instanceof HttpError
        ? { code: error.code, message: error.message }
        : { code: "translation_failed", message: "The translation failed unexpectedly." };
    await app.write((tx) => fail(tx, app, work, fault));
  } finally {
    clearInterval(renewal);
  }
}

async function publish(tx: Db, app: App, { job: { id }, subtitle, language }: Work, stored: StoredText): Promise<void> {
  const job = await tx.select().from(captionJobs).where(eq(captionJobs.id, id)).get();
  const asset = job && (await tx.select().from(assets).where(eq(assets.id, job.assetId)).get());
  const source = await tx.select().from(subtitles).where(eq(subtitles.id, subtitle.id)).get();
  const entry = job?.translations.find((one) => one.language === language);
  if (!job || !asset || !source || entry?.status !== "pending") return;
  // The text was changed meanwhile: the new one is translated.
  if (source.objectKey !== subtitle.objectKey || source.language !== subtitle.language)
    return settle(tx, app, job, entry);
  const tracks = await subtitlesOf(tx, asset.id);
  const existing = tracks.find((track) => track.language === language);
  if (entry.subtitle_id !== null && existing?.id !== entry.subtitle_id)
    return settle(tx, app, job, { ...entry, status: "skipped" });
  if (!hasRoom(tracks, language)) {
    const message = "The asset already has the maximum number of subtitles.";
    return settle(tx, app, job, { ...entry, status: "failed", error: { code: "subtitle_limit_reached", message } });
  }
  const label = translatedLabel(existing?.source === "translation" ? existing.label : ownName(language));
  const position = existing?.position ?? source.position;
  const fields = { language, label, source: "translation", position } as const;
  const row = await addSubtitle(tx, app, asset, fields, { stored, replace: true });
  await settle(tx, app, job, { ...entry, subtitle_id: row.id, status: "ready", error: null });
}

/** A failure that may pass is tried again, later each time. */
async function fail(tx: Db, app: App, { job: { id }, language }: Work, error: Fault): Promise<void> {
  const job = await tx.select().from(captionJobs).where(eq(captionJobs.id, id)).get();
  const entry = job?.translations.find((one) => one.language === language);
  if (!job || entry?.status !== "pending") return;
  const delayMs = PASSING.has(error.code) ? DELAYS_MS[entry.attempts] : undefined;
  if (delayMs !== undefined) return settle(tx, app, job, { ...entry, attempts: entry.attempts + 1 }, delayMs);
  await failWaiting(tx, app, entry.subtitle_id, error);
  await settle(tx, app, job, { ...entry, status: "failed", error });
}

/** Notes the state of one translation; the others of the job follow, one that is tried again last. */
async function settle(tx: Db, app: App, job: CaptionJobRow, entry: CaptionTranslation, delayMs = 0): Promise<void> {
  const others = job.translations.filter(({ language }) => language !== entry.language);
  const isDeferred = entry.status === "pending";
  const translations = isDeferred
    ? [...others, entry]
    : job.translations.map((one) => (one.language === entry.language ? entry : one));
  const isNext = others.some(({ status, attempts }) => status === "pending" && attempts === 0);
  const isLeft = translations.some(({ status }) => status === "pending");
  const now = app.clock.now();
  const translateAt = isNext ? now : isLeft ? now + delayMs : null;
  await tx.update(captionJobs).set({ translations, translateAt, updatedAt: now }).where(eq(captionJobs.id, job.id));
}

/** Extends a claim that is in use; one that was settled meanwhile has no time, or that of its next attempt. */
const claimUntil = (app: App, { id }: CaptionJobRow, ms: number): Promise<void> =>
  app.write(async (tx) => {
    const translateAt = app.clock.now() + ms;
    await tx
      .update(captionJobs)
      .set({ translateAt })
      .where(and(eq(captionJobs.id, id), isNotNull(captionJobs.translateAt)));
  });
