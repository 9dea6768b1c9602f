import * as v from "valibot";
import type { App } from "#app.ts";
import { HttpError, notFound } from "#lib/base";
import { decodeKey, encodeKey, page } from "#platform/http/paging.ts";
import { route } from "#platform/http/route.ts";
import { storageOf } from "#platform/http/storage.ts";
import { parseDocument } from "#platform/parsing/parse-document.ts";
import type { AssetRow, SubtitleRow } from "#storage/db/schema.ts";
import { getAsset, readAsset } from "../assets/queries.ts";
import { checkedVtt, languageOf, MAX_SUBTITLE_BYTES, subtitleContent, vttOfFile } from "./content.ts";
import { requireSubtitle, subtitlesOf } from "./queries.ts";
import { AssetParams, Subtitle, SubtitleForm, SubtitleParams, SubtitlePatch, SubtitleQuery } from "./schema.ts";
import { addSubtitle, changeSubtitle, removeSubtitle, storeText } from "./store.ts";
import { wordsOf } from "./transcript.ts";
import { refreshedUrl, subtitleRecord } from "./urls.ts";

const base = "/api/v1/assets/:video_asset_id/subtitles";
/** Content of two-byte letters only, each escaped as \uXXXX as many clients do, plus the other fields. */
const MAX_PATCH_BYTES = 3 * MAX_SUBTITLE_BYTES + 65_536;
const SubtitleCursor = v.strictTuple([v.number(), v.string()]);
const shared = { tag: "Subtitles" } as const;
const changing = { ...shared, scope: "assets:write" } as const;
const noStorage = ["storage_not_configured"];

export const subtitleRoutes = [
  route({
    ...shared,
    method: "GET",
    path: base,
    operationId: "listSubtitles",
    summary: "List the subtitles of an asset, by position, then language",
    params: AssetParams,
    query: SubtitleQuery,
    responses: { 200: v.array(Subtitle) },
    errors: { 503: noStorage },
    async handle(context) {
      const { app, caller, params, query } = context;
      const asset = (await readAsset(app, caller, params.video_asset_id)) ?? notFound("asset");
      const after = decodeKey(query.cursor, SubtitleCursor);
      const rows = (await subtitlesOf(app.db, asset.id)).filter((row) => !after || isBehind(row, after));
      const cursorOf = (row: SubtitleRow) => encodeKey([row.position, row.language]);
      const hasContent = query.include !== undefined;
      if (hasContent) storageOf(app);
      return page(context, {
        batches: async function* (count) {
          yield rows.slice(0, count);
        },
        toWire: (row) => (hasContent ? withContent(app, asset, row) : subtitleRecord(app, asset, row)),
        cursorOf,
      });
    },
  }),
  route({
    ...shared,
    method: "GET",
    path: `${base}/:id`,
    operationId: "getSubtitle",
    summary: "Get a subtitle with its content",
    params: SubtitleParams,
    responses: { 200: Subtitle },
    errors: { 503: noStorage },
    async handle({ app, caller, params }) {
      const { asset, subtitle } = await requireSubtitle(app.db, caller, params);
      return withContent(app, asset, subtitle);
    },
  }),
  route({
    ...changing,
    method: "POST",
    path: base,
    operationId: "createSubtitle",
    summary: "Upload a subtitle file (WebVTT, SubRip or TTML)",
    params: AssetParams,
    form: { maxFileBytes: MAX_SUBTITLE_BYTES },
    body: SubtitleForm,
    idempotent: refreshedUrl,
    responses: { 201: Subtitle },
    errors: {
      422: [
        "invalid_subtitle",
        "document_too_complex",
        "invalid_language",
        "language_taken",
        "subtitle_limit_reached",
        "idempotency_key_reused",
      ],
      429: ["rate_limited"],
      503: [...noStorage, "busy"],
    },
    async handle({ app, caller, params, body, commit, signal }) {
      const currentAsset = (await getAsset(app.db, caller, params.video_asset_id)) ?? notFound("asset");
      storageOf(app);
      const { label, position, is_default: isDefault, role } = body;
      const language = languageOf(body.language);
      const stored = await storeText(
        app,
        currentAsset,
        await vttOfFile(app, body.file, { tenantId: currentAsset.tenantId, signal }),
      );
      return commit(async (tx) => {
        // The asset may have been deleted while storage was accessed.
        const asset = (await getAsset(tx, caller, currentAsset.id)) ?? notFound("asset");
        const fields = { language, label, source: "upload", position, isDefault, role } as const;
        return subtitleRecord(app, asset, await addSubtitle(tx, app, asset, fields, { stored }));
      });
    },
  }),
  route({
    ...changing,
    method: "PATCH",
    alias: "PUT",
    path: `${base}/:id`,
    operationId: "updateSubtitle",
    summary: "Update a subtitle or its content",
    params: SubtitleParams,
    body: SubtitlePatch,
    maxBodyBytes: MAX_PATCH_BYTES,
    responses: { 200: Subtitle },
    errors: {
      422: ["invalid_subtitle", "document_too_complex", "invalid_language", "language_taken"],
      429: ["rate_limited"],
      503: [...noStorage, "busy"],
    },
    async handle({ app, caller, params, body, signal }) {
      const current = await requireSubtitle(app.db, caller, params);
      storageOf(app);
      const { label, position, is_default: isDefault, role, content } = body;
      const language = body.language === undefined ? undefined : languageOf(body.language);
      const checked =
        content === undefined
          ? undefined
          : await checkedVtt(app, "content", content, { tenantId: current.asset.tenantId, signal });
      const stored = checked && {
        ...(await storeText(app, current.asset, checked)),
        words: await wordsOfEdited(app, current, checked.text, signal),
      };
      const changed = await app.write(async (tx) => {
        const { subtitle } = await requireSubtitle(tx, caller, params);
        return changeSubtitle(tx, app, subtitle, { language, label, position, isDefault, role }, stored);
      });
      return subtitleRecord(app, current.asset, changed);
    },
  }),
  route({
    ...changing,
    method: "DELETE",
    path: `${base}/:id`,
    operationId: "deleteSubtitle",
    summary: "Delete a subtitle",
    params: SubtitleParams,
    responses: { 204: null },
    errors: { 503: noStorage },
    async handle({ app, caller, params }) {
      await requireSubtitle(app.db, caller, params);
      storageOf(app);
      await app.write(async (tx) => removeSubtitle(tx, app, (await requireSubtitle(tx, caller, params)).subtitle));
    },
  }),
];

/**
 * The words of a recognized text keep their times when it is corrected; null for a text without such times. The text is
 * complete without, so one that is too complex is only logged. Throws 429 and 503 while the parser is busy: a repeated request keeps
 * the times.
 */
async function wordsOfEdited(
  app: App,
  { asset, subtitle }: { asset: AssetRow; subtitle: SubtitleRow },
  text: string,
  signal: AbortSignal,
): Promise<Buffer | null> {
  const before = await wordsOf(app, subtitle);
  if (!before) return null;
  const { tenantId } = asset;
  try {
    const { words } = await parseDocument(app, "editedWords", { text, words: before }, { tenantId, signal });
    return words && Buffer.from(words);
  } catch (error) {
    if (!(error instanceof HttpError && error.code === "document_too_complex")) throw error;
    const fields = { path: subtitle.objectKey, reason: error.message };
    app.log.warn(fields, "the times of the words of an edited subtitle cannot be kept");
    return null;
  }
}

async function withContent(app: App, asset: AssetRow, row: SubtitleRow) {
  return { ...(await subtitleRecord(app, asset, row)), content: await subtitleContent(app, row) };
}

const isBehind = (row: SubtitleRow, [position, language]: [number, string]) =>
  row.position > position || (row.position === position && row.language > language);
