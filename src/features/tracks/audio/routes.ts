import { eq } from "drizzle-orm";
import * as v from "valibot";
import type { App } from "#app.ts";
import { getAsset, readAsset } from "#features/assets/queries.ts";
import { addStoredBytes } from "#features/assets/stored-bytes.ts";
import { languageOf } from "#features/subtitles/content.ts";
import { emitAudioTrack } from "#features/transcoding/added-audio/events.ts";
import { clearDefault } from "#features/transcoding/added-audio/queue.ts";
import { rowsOf } from "#features/transcoding/added-audio/rows.ts";
import { HttpError, invalid, notFound } from "#lib/base";
import { streamForm } from "#platform/http/form.ts";
import { scheduleDeletion } from "#platform/http/object-gc.ts";
import { route } from "#platform/http/route.ts";
import { type AssetRow, audioTracks } from "#storage/db/schema.ts";
import { insertAddedTrack, MAX_FILE_BYTES, requireAddable, storeAudio } from "./add.ts";
import { AssetParams, AudioTrack, AudioTrackForm, AudioTrackPatch, TrackParams, toAudioTrack } from "./schema.ts";
import { defaultOf, listedTracks, trackOf } from "./source-tracks.ts";

const path = "/api/v1/assets/:id/audio_tracks";
const one = { path: `${path}/:track_id`, params: TrackParams } as const;
const shared = { tag: "Audio tracks" } as const;
const writes = { ...shared, scope: "assets:write", audited: true } as const;
/** Players that have just read the old manifests may still request its segments. */
const OLD_MEDIA_MS = 3_600_000;
const shown = async (app: App, asset: AssetRow, id: number) => {
  const rows = await listedTracks(app, asset);
  const row = rows.find((each) => each.id === id) ?? notFound("audio track");
  return toAudioTrack(row, defaultOf(rows)?.id === id);
};

/** The valid fields of a form. Throws 422. */
function fieldsOf(fields: Record<string, string>) {
  for (const name of ["language", "name"] as const)
    if (fields[name] === undefined) throw new HttpError(422, "parameter_missing", `${name}: is required`);
  const parsed = v.safeParse(AudioTrackForm, fields, { abortEarly: true });
  if (parsed.success) return { ...parsed.output, language: languageOf(parsed.output.language) };
  const issue = parsed.issues[0];
  return invalid(v.getDotPath(issue) ?? "form", issue.message);
}

export const audioTrackRoutes = [
  route({
    ...shared,
    method: "GET",
    path,
    operationId: "listAudioTracks",
    summary: "List the audio tracks of an asset: those of its source, then added ones",
    params: AssetParams,
    responses: { 200: v.array(AudioTrack) },
    async handle({ app, caller, params }) {
      const rows = await listedTracks(app, (await readAsset(app, caller, params.id)) ?? notFound("asset"));
      const first = defaultOf(rows);
      return rows.map((row) => toAudioTrack(row, row === first));
    },
  }),
  route({
    ...shared,
    ...one,
    method: "GET",
    operationId: "getAudioTrack",
    summary: "Get an audio track",
    responses: { 200: AudioTrack },
    handle: async ({ app, caller, params }) =>
      shown(app, (await readAsset(app, caller, params.id)) ?? notFound("asset"), params.track_id),
  }),
  route({
    ...writes,
    method: "POST",
    path,
    operationId: "createAudioTrack",
    summary: "Add an audio track to a ready asset, without encoding its video",
    params: AssetParams,
    idempotent: {},
    raw: true,
    rawBody: {
      "multipart/form-data": v.object({
        ...AudioTrackForm.entries,
        file: v.pipe(v.string(), v.description("Any file with audio")),
      }),
    },
    responses: { 201: AudioTrack },
    errors: {
      403: ["quota_exceeded"],
      409: ["asset_conflict"],
      413: ["payload_too_large"],
      415: ["unsupported_media_type"],
      422: ["parameter_missing", "asset_not_ready", "invalid_language"],
      503: ["storage_not_configured"],
    },
    async handle(context) {
      const { app, caller, params, signal, commit, identify } = context;
      const asset = (await readAsset(app, caller, params.id)) ?? notFound("asset");
      await requireAddable(app, asset, Number(context.headers.get("content-length") ?? 0));
      const form = await streamForm(context, {
        maxFileBytes: MAX_FILE_BYTES,
        onFile: ({ filename, body }) => storeAudio(app, asset, { filename, body, signal }),
      });
      const { file } = form;
      if (!file) throw new HttpError(422, "parameter_missing", "file: is required");
      if (file.bytes === 0) invalid("file", "is empty");
      const label = fieldsOf(form.fields);
      identify({ fields: form.fields, bytes: file.bytes });
      return commit(async (tx) => toAudioTrack(await insertAddedTrack(tx, app, caller, params.id, file, label), false));
    },
  }),
  route({
    ...writes,
    ...one,
    method: "PATCH",
    operationId: "updateAudioTrack",
    summary: "Label an audio track, or make it the one that players begin with",
    body: AudioTrackPatch,
    responses: { 200: AudioTrack },
    errors: { 409: ["asset_conflict"], 422: ["invalid_language"] },
    async handle({ app, caller, params, body }) {
      const asset = (await readAsset(app, caller, params.id)) ?? notFound("asset");
      const language = body.language === undefined ? undefined : languageOf(body.language);
      await listedTracks(app, asset);
      await app.write(async (tx) => {
        const current = (await getAsset(tx, caller, params.id)) ?? notFound("asset");
        const row = (await trackOf(tx, current.id, params.track_id)) ?? notFound("audio track");
        const { name, role, is_default: isDefault } = body;
        if (isDefault && row.status === "failed")
          throw new HttpError(409, "asset_conflict", "The audio track has failed; it cannot be the default.");
        if (isDefault === false && row.isDefault && row.status === "ready")
          invalid("is_default", "cannot be false for the default track; make another one the default");
        // One that is being encoded becomes the default when it is ready.
        if (isDefault && row.status === "ready") await clearDefault(tx, current.id, row.id);
        const set = { language, name, role, isDefault, updatedAt: app.clock.now() };
        await tx.update(audioTracks).set(set).where(eq(audioTracks.id, row.id));
      });
      return shown(app, asset, params.track_id);
    },
  }),
  route({
    ...writes,
    ...one,
    method: "DELETE",
    operationId: "deleteAudioTrack",
    summary: "Remove an audio track",
    responses: { 204: null },
    errors: { 409: ["asset_conflict"] },
    async handle({ app, caller, params }) {
      const asset = (await readAsset(app, caller, params.id)) ?? notFound("asset");
      const listed = (await listedTracks(app, asset)).map(({ id }) => id);
      await app.write(async (tx) => {
        const current = (await getAsset(tx, caller, params.id)) ?? notFound("asset");
        const row = (await trackOf(tx, current.id, params.track_id)) ?? notFound("audio track");
        const others = (await rowsOf(tx, current.id)).filter(
          ({ id, status, isRemoved }) => id !== row.id && status === "ready" && !isRemoved && listed.includes(id),
        );
        if (row.status === "ready" && others.length === 0)
          throw new HttpError(409, "asset_conflict", "It is the last audio track of the asset; add another one first.");
        const now = app.clock.now();
        if (row.rendition !== null) {
          const set = { isRemoved: true, isDefault: false, updatedAt: now };
          await tx.update(audioTracks).set(set).where(eq(audioTracks.id, row.id));
          await emitAudioTrack(tx, app, "video.audio_track.deleted", row);
          return;
        }
        await tx.delete(audioTracks).where(eq(audioTracks.id, row.id));
        await addStoredBytes(tx, app, current, -row.bytes);
        const keys = [row.sourceKey, row.status === "ready" ? row.prefix : null].filter((key) => key !== null);
        await scheduleDeletion(tx, app, keys, OLD_MEDIA_MS);
        await emitAudioTrack(tx, app, "video.audio_track.deleted", row);
      });
    },
  }),
];
