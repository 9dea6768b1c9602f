import { rm } from "node:fs/promises";
import * as v from "valibot";
import type { App } from "#app.ts";
import { HttpError, invalid } from "#lib/base";
import type { FinishedRecording, WantedClip } from "#live/ingest/messages.ts";
import { newDeliveredPrefix } from "#model/object-keys.ts";
import { registerPending } from "#platform/http/object-gc.ts";
import { RecordIdInPath } from "#platform/http/parameters.ts";
import { Reply, type Route, route } from "#platform/http/route.ts";
import { Name } from "#platform/http/schemas.ts";
import { storageOf } from "#platform/http/storage.ts";
import { Asset, toAsset } from "../assets/schema.ts";
import { type Channel, requireChannel, requireNotRevoked } from "./queries.ts";
import { liveRegistry } from "./registry.ts";
import { storedStreams } from "./shared/stored-streams.ts";
import { newClipFolder } from "./streams/folders.ts";
import { liveStreams } from "./streams/live-streams.ts";
import { copyFiles, insertRecorded, storeCaptions, storeFiles } from "./streams/recorded-asset.ts";
import { clipStored } from "./streams/stored-clip.ts";

/** The longest stream lasts a day. */
const MAX_SECONDS = 86_400;

const Seconds = v.pipe(
  v.number("must be a number of seconds"),
  v.finite("must be a number of seconds"),
  v.minValue(0, "must not be negative"),
  v.maxValue(MAX_SECONDS, `must be at most ${MAX_SECONDS}`),
);
const LiveClipWrite = v.object({
  title: v.optional(v.pipe(Name(500), v.description("Default: the name of the channel"))),
  start_seconds: v.optional(v.pipe(Seconds, v.description("From the start of the stream; moves down to a segment"))),
  end_seconds: v.optional(v.pipe(Seconds, v.description("Exclusive; moves up to the end of a segment"))),
  last_seconds: v.optional(v.pipe(Seconds, v.description("In place of both: until now"))),
});

export const liveClipRoutes: Route[] = [
  route({
    method: "POST",
    path: "/api/v1/live/channels/:id/clips",
    scope: "assets:write",
    tag: "Live",
    operationId: "createLiveClip",
    summary: "Create an asset of a part of a running stream, without encoding",
    expensive: "clips",
    params: v.object({ id: RecordIdInPath }),
    body: LiveClipWrite,
    idempotent: {},
    responses: { 201: Asset },
    errors: {
      403: ["quota_exceeded"],
      409: ["channel_revoked"],
      422: ["channel_idle", "clip_not_possible", "idempotency_key_reused"],
      503: ["busy", "storage_not_configured", "storage_unavailable"],
    },
    async handle({ app, caller, params: { id }, body, signal, commit }) {
      const row = requireNotRevoked(await requireChannel(app.db, caller, id));
      storageOf(app);
      const clip = await clipOf(app, row, wantedOf(body));
      try {
        const prefix = newDeliveredPrefix(row.tenantId);
        await registerPending(app, [prefix]);
        const { made, folder, objects } = clip;
        const isObject = (path: string) => objects?.paths.has(path) ?? false;
        const files = made.files.filter((path) => !isObject(path));
        await storeFiles(app, files, { folder, prefix, signal });
        if (objects) await copyFiles(app, made.files.filter(isObject), { from: objects.prefix, prefix, signal });
        const { tenantId, name, playbackPolicy } = row;
        const captions = await storeCaptions(app, prefix, made);
        const recorded = { tenantId, title: body.title ?? name, playbackPolicy, recording: made, prefix, captions };
        return await commit(async (tx) => new Reply(201, toAsset(await insertRecorded(tx, app, recorded))));
      } finally {
        await rm(clip.root, { recursive: true, force: true });
      }
    },
  }),
];

/** `folder` has the files, `root` is to be deleted with it. `objects`: files that are objects already, below `prefix`. */
type Clip = {
  root: string;
  folder: string;
  made: FinishedRecording;
  objects?: { prefix: string; paths: ReadonlySet<string> };
};

/**
 * Cuts the clip. Throws 422 `channel_idle`, and `clip_not_possible` without a
 * complete segment of that time; 503 when the stream cannot be read.
 */
async function clipOf(app: App, { id, channel }: Channel, wanted: WantedClip): Promise<Clip> {
  const received = liveRegistry(app).running(channel);
  if (received?.channelId === id) {
    const clip = (await liveStreams(app).clip(received, wanted)) ?? notPossible();
    return { root: clip.folder, ...clip };
  }
  const stream = await storedStreams(app).ofChannel(id);
  if (!stream) throw new HttpError(422, "channel_idle", "The channel has no publisher at this time.");
  const root = newClipFolder(app, stream.name);
  try {
    const { stored: paths, ...clip } = (await clipStored(app, stream, wanted, root)) ?? notPossible();
    return { root, ...clip, objects: { prefix: stream.prefix, paths } };
  } catch (error) {
    await rm(root, { recursive: true, force: true });
    throw error;
  }
}

function notPossible(): never {
  throw new HttpError(422, "clip_not_possible", "The stream has no complete segment of that time.");
}

function wantedOf(body: v.InferOutput<typeof LiveClipWrite>): WantedClip {
  const { start_seconds: startSeconds, end_seconds: endSeconds, last_seconds: lastSeconds } = body;
  if (lastSeconds !== undefined) {
    if (startSeconds !== undefined || endSeconds !== undefined)
      invalid("last_seconds", "cannot be combined with start_seconds and end_seconds");
    if (lastSeconds === 0) invalid("last_seconds", "must be greater than 0");
    return { lastSeconds };
  }
  if (startSeconds === undefined) invalid("start_seconds", "or last_seconds is required");
  if (endSeconds === undefined) invalid("end_seconds", "is required");
  if (endSeconds <= startSeconds) invalid("end_seconds", "must be after start_seconds");
  return { startSeconds, endSeconds };
}
