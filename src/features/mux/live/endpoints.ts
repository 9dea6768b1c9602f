import { and, desc, eq, isNotNull, isNull, lt } from "drizzle-orm";
import type * as v from "valibot";
import { type Channel, requireChannel } from "#features/live/queries.ts";
import { sealStreamKey } from "#features/live/simulcast/secret.ts";
import { HttpError, notFound, randomName, sha256 } from "#lib/base";
import { separately } from "#platform/http/audit.ts";
import { byId } from "#platform/http/paging.ts";
import { liveChannels, liveStreams, muxStreams, playbackIds } from "#storage/db/schema.ts";
import { policiesOf } from "../assets/create.ts";
import { PlaybackIdCreate } from "../assets/schema.ts";
import { type Endpoint, endpoint, type MuxCall } from "../endpoint.ts";
import { invalidParameter, notSupported } from "../errors.ts";
import { fields } from "../fields.ts";
import { muxPage } from "../paging.ts";
import { addChannelPlaybackId, playbackIdsOfChannel } from "./playback-ids.ts";
import { toMuxStream, toMuxTarget } from "./record.ts";
import {
  EmbeddedUpdate,
  GeneratedUpdate,
  MAX_DURATION,
  nameOfService,
  nameOfSpeech,
  STANDARD_RECONNECT,
  StreamCreate,
  StreamList,
  StreamUpdate,
  type Subtitles,
  TargetCreate,
} from "./schema.ts";

const path = "/video/v1/live-streams";
const one = `${path}/:id`;
const native = "/api/v1/live/channels";
const READS = { scopes: ["assets:read", "assets:write"] } as const;
const WRITES = { scopes: ["assets:write"] } as const;
const NAME_LENGTH = 30;

/** The channel of a path, unless it is revoked. Throws 404. */
async function requireStream({ app, caller, params }: MuxCall): Promise<Channel> {
  const id = /^[1-9]\d{0,14}$/.test(params.id ?? "") ? Number(params.id) : notFound("live stream");
  const channel = await requireChannel(app.db, caller, id);
  return channel.revokedAt === null ? channel : notFound("live stream");
}

/** The stream key allows to publish: only for those who may create channels. */
const shown = async ({ app, caller }: MuxCall, id: number) =>
  toMuxStream(app, await requireChannel(app.db, caller, id), caller.scopes.includes("assets:write"));

const storeKey = (
  { app, caller: { tenantId } }: MuxCall,
  channelId: number,
  streamKey: string,
  { passthrough, isReduced = false }: { passthrough?: string | undefined; isReduced?: boolean } = {},
) =>
  app.write(async (tx) => {
    const sealed = sealStreamKey(app, tenantId, streamKey);
    await tx
      .insert(muxStreams)
      .values({ channelId, tenantId, streamKey: sealed, passthrough: passthrough || null, isReduced })
      .onConflictDoUpdate({ target: muxStreams.channelId, set: { streamKey: sealed } });
  });

type Target = Parameters<typeof toMuxTarget>[0];
const addTarget = (
  { native: send }: MuxCall,
  id: number,
  { passthrough: name, ...target }: { passthrough?: string | undefined },
) => send<Target>("POST", `${native}/${id}/targets`, { ...target, ...(name && { name }) }, { name: "passthrough" });

/** A channel with a signed playback id is signed itself: its own URL must not open what the id protects. */
const policyOf = (policies: readonly ("public" | "signed")[]) => (policies.includes("signed") ? "signed" : "public");

/** As `status` of a stream. */
function withStatus(status: "active" | "idle" | "disabled" | undefined) {
  if (status === undefined) return undefined;
  if (status === "active") return isNotNull(liveStreams.id);
  return and(isNull(liveStreams.id), eq(liveChannels.enabled, status === "idle"));
}

/** Recordings have the policy of their stream. Throws 422 for another one. */
function requireSamePolicy(settings: Parameters<typeof policiesOf>[0] | undefined, policy: "public" | "signed"): void {
  if (settings && policiesOf(settings).some((each) => each !== policy))
    notSupported(`new_asset_settings with another policy than ${policy}`);
}

/** Languages whose speech is recognized. Throws 422 for names that players do not show. */
function spokenIn({ generated_subtitles: generated = [], embedded_subtitles: embedded = [] }: Subtitles): string[] {
  for (const { language_code: language, name } of generated)
    if (name !== undefined && name !== nameOfSpeech(language))
      notSupported(`generated_subtitles.name other than ${nameOfSpeech(language)}`);
  for (const { language_channel: service, name } of embedded)
    if (name !== undefined && name !== nameOfService(service))
      notSupported(`embedded_subtitles.name other than ${nameOfService(service)}`);
  return generated.map(({ language_code }) => language_code);
}

/** A request whose response has no body. `change`: what it does to the channel. */
const command = (name: string, operation: string, change: (call: MuxCall, id: number) => Promise<unknown>) =>
  endpoint({
    ...WRITES,
    method: "PUT",
    path: `${one}/${name}`,
    operation,
    status: 204,
    async handle(call) {
      await call.body(fields({}));
      await change(call, (await requireStream(call)).id);
    },
  });
/** Repeating it does nothing: at Mux an idle stream can be completed. */
async function endStream(call: MuxCall, id: number): Promise<void> {
  try {
    await call.native("POST", `${native}/${id}/end`);
  } catch (error) {
    if (!(error instanceof HttpError && error.code === "channel_idle")) throw error;
  }
}
/** `low_latency` and `reduced_latency` are what Mux had before `latency_mode`. Throws 400 where they contradict it, or each other. */
function latencyOf({
  latency_mode: mode,
  low_latency: low,
  reduced_latency: reduced,
}: v.InferOutput<typeof StreamCreate>) {
  const latency = mode ?? (low ? "low" : reduced ? "reduced" : "standard");
  if ((low ?? latency === "low") !== (latency === "low")) invalidParameter("low_latency", "contradicts latency_mode");
  if ((reduced ?? latency === "reduced") !== (latency === "reduced"))
    invalidParameter("reduced_latency", `contradicts ${mode === undefined ? "low_latency" : "latency_mode"}`);
  return latency;
}
const enable = (enabled: boolean) => (call: MuxCall, id: number) =>
  call.native("PATCH", `${native}/${id}`, { enabled });

export const liveEndpoints: readonly Endpoint[] = [
  endpoint({
    ...WRITES,
    method: "POST",
    path,
    operation: "createChannel",
    status: 201,
    async handle(call) {
      const { app } = call;
      const body = await call.body(StreamCreate);
      const policies = policiesOf(body);
      const policy = policyOf(policies);
      requireSamePolicy(body.new_asset_settings, policy);
      const captions_live = spokenIn(body);
      const latency = latencyOf(body);
      const made = await call.native<{ id: number; tenant_id: number; stream_key: string }>("POST", native, {
        channel: randomName(NAME_LENGTH).toLowerCase(),
        ...(body.meta?.title?.trim() && { name: body.meta.title }),
        playback_policy: policy,
        low_latency: latency === "low",
        captions_live,
        reconnect_seconds: body.reconnect_window ?? (latency === "standard" ? STANDARD_RECONNECT : 0),
        max_duration_seconds: body.max_continuous_duration ?? MAX_DURATION,
      });
      try {
        const { passthrough } = body;
        await storeKey(call, made.id, made.stream_key, { passthrough, isReduced: latency === "reduced" });
        await app.write(async (tx) => {
          for (const each of policies)
            await addChannelPlaybackId(tx, app, { id: made.id, tenantId: made.tenant_id }, each);
        });
        for (const target of body.simulcast_targets ?? []) await addTarget(call, made.id, target);
      } catch (error) {
        await separately(() => call.native("DELETE", `${native}/${made.id}`));
        throw error;
      }
      return shown(call, made.id);
    },
  }),
  endpoint({
    ...READS,
    method: "GET",
    path,
    hasQuery: true,
    handle(call) {
      const { app, caller } = call;
      const query = call.query(StreamList);
      const { id, tenantId, revokedAt, streamKeyHash } = liveChannels;
      const batches = byId(undefined, (before, limit) =>
        app.db
          .select({ id })
          .from(liveChannels)
          .leftJoin(liveStreams, and(eq(liveStreams.channelId, id), isNull(liveStreams.endedAt)))
          .where(
            and(
              ...[eq(tenantId, caller.tenantId), isNull(revokedAt), withStatus(query.status)],
              query.stream_key === undefined ? undefined : eq(streamKeyHash, sha256(query.stream_key)),
              before === undefined ? undefined : lt(id, before),
            ),
          )
          .orderBy(desc(id))
          .limit(limit + 1)
          .all(),
      );
      return muxPage(call, query, { batches, toWire: (row) => shown(call, row.id) });
    },
  }),
  endpoint({ ...READS, method: "GET", path: one, handle: async (call) => shown(call, (await requireStream(call)).id) }),
  endpoint({
    ...WRITES,
    method: "PATCH",
    path: one,
    operation: "updateChannel",
    async handle(call) {
      const { app } = call;
      const { id, channel, playbackPolicy } = await requireStream(call);
      const body = await call.body(StreamUpdate);
      const { meta, latency_mode: latency, passthrough, reconnect_window, max_continuous_duration } = body;
      requireSamePolicy(body.new_asset_settings, playbackPolicy);
      const field = passthrough !== undefined ? "passthrough" : latency === "reduced" ? "latency_mode=reduced" : null;
      // Before the channel is changed: either all of the request is done, or nothing.
      if (field && !(await app.db.select().from(muxStreams).where(eq(muxStreams.channelId, id)).get()))
        notSupported(`${field} of a channel that was not created through this API`);
      const change = {
        ...(reconnect_window !== undefined && { reconnect_seconds: reconnect_window }),
        ...(max_continuous_duration !== undefined && { max_duration_seconds: max_continuous_duration }),
        ...(meta?.title !== undefined && { name: meta.title.trim() === "" ? channel : meta.title }),
        ...(latency !== undefined && { low_latency: latency === "low" }),
      };
      if (Object.keys(change).length > 0) await call.native("PATCH", `${native}/${id}`, change);
      const own = {
        ...(passthrough !== undefined && { passthrough: passthrough || null }),
        ...(latency !== undefined && { isReduced: latency === "reduced" }),
      };
      if (Object.keys(own).length > 0)
        await app.write(async (tx) => void (await tx.update(muxStreams).set(own).where(eq(muxStreams.channelId, id))));
      return shown(call, id);
    },
  }),
  endpoint({
    ...WRITES,
    method: "DELETE",
    path: one,
    operation: "revokeChannel",
    status: 204,
    handle: async (call) => call.native("DELETE", `${native}/${(await requireStream(call)).id}`),
  }),
  command("enable", "updateChannel", enable(true)),
  command("disable", "updateChannel", enable(false)),
  command("complete", "endLiveStream", endStream),
  endpoint({
    ...WRITES,
    method: "PUT",
    path: `${one}/generated-subtitles`,
    operation: "updateChannel",
    async handle(call) {
      const { id } = await requireStream(call);
      const captions_live = spokenIn(await call.body(GeneratedUpdate));
      await call.native("PATCH", `${native}/${id}`, { captions_live });
      return shown(call, id);
    },
  }),
  endpoint({
    ...WRITES,
    method: "PUT",
    path: `${one}/embedded-subtitles`,
    operation: "updateChannel",
    async handle(call) {
      const { id } = await requireStream(call);
      spokenIn(await call.body(EmbeddedUpdate));
      return shown(call, id);
    },
  }),
  endpoint({
    ...WRITES,
    method: "POST",
    path: `${one}/reset-stream-key`,
    operation: "rotateStreamKey",
    status: 201,
    hasNoBody: true,
    async handle(call) {
      const { id } = await requireStream(call);
      const { stream_key: key } = await call.native<{ stream_key: string }>("POST", `${native}/${id}/stream_key`);
      await storeKey(call, id, key);
      return shown(call, id);
    },
  }),
  endpoint({
    ...WRITES,
    method: "POST",
    path: `${one}/playback-ids`,
    operation: "createChannelPlaybackId",
    status: 201,
    async handle(call) {
      const { app } = call;
      const channel = await requireStream(call);
      const { policy } = await call.body(PlaybackIdCreate);
      if (policy === "signed" && channel.playbackPolicy === "public")
        await call.native("PATCH", `${native}/${channel.id}`, { playback_policy: "signed" });
      return app.write(async (tx) => addChannelPlaybackId(tx, app, channel, policy));
    },
  }),
  endpoint({
    ...READS,
    method: "GET",
    path: `${one}/playback-ids/:playback_id`,
    async handle(call) {
      const all = await playbackIdsOfChannel(call.app.db, (await requireStream(call)).id);
      return all.find(({ id }) => id === call.params.playback_id) ?? notFound("playback id");
    },
  }),
  endpoint({
    ...WRITES,
    method: "DELETE",
    path: `${one}/playback-ids/:playback_id`,
    operation: "deleteChannelPlaybackId",
    status: 204,
    async handle(call) {
      const { id } = await requireStream(call);
      const own = and(eq(playbackIds.id, call.params.playback_id ?? ""), eq(playbackIds.channelId, id));
      await call.app.write(async (tx) => {
        if (!(await tx.delete(playbackIds).where(own).returning().get())) notFound("playback id");
      });
    },
  }),
  endpoint({
    ...WRITES,
    method: "POST",
    path: `${one}/simulcast-targets`,
    operation: "createSimulcastTarget",
    status: 201,
    async handle(call) {
      const { id } = await requireStream(call);
      return toMuxTarget(await addTarget(call, id, await call.body(TargetCreate)));
    },
  }),
  endpoint({
    ...READS,
    method: "GET",
    path: `${one}/simulcast-targets/:target_id`,
    async handle(call) {
      const { id } = await requireStream(call);
      return toMuxTarget(await call.native<Target>("GET", `${native}/${id}/targets/${targetOf(call)}`));
    },
  }),
  endpoint({
    ...WRITES,
    method: "DELETE",
    path: `${one}/simulcast-targets/:target_id`,
    operation: "deleteSimulcastTarget",
    status: 204,
    async handle(call) {
      const { id } = await requireStream(call);
      return call.native("DELETE", `${native}/${id}/targets/${targetOf(call)}`);
    },
  }),
];

const targetOf = ({ params }: MuxCall) =>
  /^\d{1,15}$/.test(params.target_id ?? "") ? params.target_id : notFound("target");
