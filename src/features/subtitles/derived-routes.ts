import * as v from "valibot";
import { HttpError, invalid } from "#lib/base";
import type { Caller } from "#platform/http/caller.ts";
import { route } from "#platform/http/route.ts";
import { Id } from "#platform/http/schemas.ts";
import { storageOf } from "#platform/http/storage.ts";
import type { Db } from "#storage/db/open.ts";
import type { SubtitleRow } from "#storage/db/schema.ts";
import { languageOf } from "./content.ts";
import { requireSubtitle, subtitlesOf } from "./queries.ts";
import { requireRoom } from "./room.ts";
import { Subtitle, SubtitleParams } from "./schema.ts";
import { addSubtitle, changeSubtitle, emitSubtitleReady, storeText } from "./store.ts";
import { referenceFor, Sync, syncedText } from "./sync.ts";
import { translatedLabel, translatedText, translatorOf } from "./translate.ts";
import { refreshedUrl, subtitleRecord } from "./urls.ts";

const track = "/api/v1/assets/:video_asset_id/subtitles/:id";

/** Tracks that are derived from others. */
export const derivedSubtitleRoutes = [
  route({
    method: "POST",
    path: `${track}/translate`,
    scope: "assets:write",
    limit: "translate",
    expensive: "translate",
    tag: "Subtitles",
    operationId: "translateSubtitle",
    summary: "Translate a subtitle into another language",
    params: SubtitleParams,
    body: v.object({ target_language: v.pipe(v.string("must be a string"), v.description("A BCP 47 tag")) }),
    idempotent: refreshedUrl,
    responses: { 201: Subtitle },
    errors: {
      409: ["subtitle_changed"],
      422: ["invalid_language", "document_too_complex", "subtitle_limit_reached", "idempotency_key_reused"],
      502: ["translation_failed"],
      503: ["translation_not_configured", "storage_not_configured", "busy"],
    },
    async handle({ app, caller, params, body, commit, signal }) {
      const { asset, subtitle } = await requireSubtitle(app.db, caller, params);
      storageOf(app);
      await translatorOf(app);
      const language = languageOf(body.target_language, "target_language");
      if (language === subtitle.language)
        invalid("target_language", `the subtitle is already in ${language}`, "invalid_language");
      // Checked again below; here it precedes the call of the service, which may cost money.
      requireRoom(await subtitlesOf(app.db, asset.id), language);
      const text = await translatedText(app, subtitle, language, signal);
      const stored = await storeText(app, asset, { text, warnings: subtitle.warnings });
      return commit(async (tx) => {
        const now = await unchanged(tx, caller, subtitle);
        const label = translatedLabel(now.subtitle.label);
        const fields = { language, label, source: "translation", position: now.subtitle.position } as const;
        return subtitleRecord(app, now.asset, await addSubtitle(tx, app, now.asset, fields, { stored, replace: true }));
      });
    },
  }),
  route({
    method: "POST",
    path: `${track}/sync`,
    scope: "assets:write",
    limit: "sync",
    expensive: "sync",
    tag: "Subtitles",
    operationId: "syncSubtitle",
    summary: "Synchronize a subtitle with the timing of another",
    params: SubtitleParams,
    body: v.object({
      reference_track_id: v.pipe(
        v.nullish(Id),
        v.description("Default: the newest automatic subtitle, else the default subtitle"),
      ),
    }),
    responses: {
      200: v.object({ ...Subtitle.entries, sync: v.pipe(Sync, v.description("How the subtitle was synchronized")) }),
    },
    errors: {
      409: ["subtitle_changed"],
      422: ["sync_no_reference", "sync_low_overlap", "document_too_complex"],
      503: ["storage_not_configured", "busy"],
    },
    async handle({ app, caller, params, body, signal }) {
      const { asset, subtitle } = await requireSubtitle(app.db, caller, params);
      storageOf(app);
      const reference = referenceFor(subtitle, await subtitlesOf(app.db, asset.id), body.reference_track_id);
      const { text, sync } = await syncedText(app, subtitle, reference, signal);
      const stored = await storeText(app, asset, { text, warnings: subtitle.warnings });
      const changed = await app.write(async (tx) => {
        const now = await unchanged(tx, caller, subtitle);
        const row = await changeSubtitle(tx, app, now.subtitle, { status: "ready" }, stored);
        await emitSubtitleReady(tx, app, row);
        return row;
      });
      return { ...(await subtitleRecord(app, asset, changed)), sync };
    },
  }),
];

/** Reads the track again. Throws 404 when it was deleted, 409 when its text has changed since the work began. */
async function unchanged(tx: Db, caller: Caller, { id, assetId, objectKey, language }: SubtitleRow) {
  const now = await requireSubtitle(tx, caller, { video_asset_id: assetId, id });
  if (now.subtitle.objectKey === objectKey && now.subtitle.language === language) return now;
  throw new HttpError(
    409,
    "subtitle_changed",
    "The subtitle was changed in the meantime; nothing was done. Send the request again.",
  );
}
