import { and, asc, count, eq, inArray } from "drizzle-orm";
import type * as v from "valibot";
import type { App } from "#app.ts";
import { HttpError, invalid, iso, notFound } from "#lib/base";
import { BlockedDestination, literalOf, rangesOf, requireAllowed } from "#lib/network";
import { PublishUrlInvalid, readPublishUrl } from "#lib/rtmp";
import type { SimulcastTarget as SentTarget } from "#live/simulcast/messages.ts";
import { emit } from "#platform/events/emit.ts";
import { toRecord } from "#platform/http/records.ts";
import type { Db } from "#storage/db/open.ts";
import { type SimulcastTargetRow, simulcastTargets as targets } from "#storage/db/schema-live.ts";
import type { Channel } from "../queries.ts";
import { liveRegistry } from "../registry.ts";
import { SimulcastTarget, type TargetPatch, type TargetWrite } from "./schema.ts";
import { readStreamKey, sealStreamKey } from "./secret.ts";
import { targetStates } from "./states.ts";

/** Each is another copy of the stream that this server sends. */
export const MAX_TARGETS = 5;
const UNREADABLE = "The server's signing secret has changed; set stream_key again.";

const isOf = (channel: Channel, id: number) => and(eq(targets.channelId, channel.id), eq(targets.id, id));

/** In the order of their creation. */
export const listTargets = (db: Db, channel: Channel): Promise<SimulcastTargetRow[]> =>
  db.select().from(targets).where(eq(targets.channelId, channel.id)).orderBy(asc(targets.id)).all();

export const findTarget = (db: Db, channel: Channel, id: number): Promise<SimulcastTargetRow | undefined> =>
  db.select().from(targets).where(isOf(channel, id)).get();

/** Throws 404. */
export const requireTarget = async (db: Db, channel: Channel, id: number): Promise<SimulcastTargetRow> =>
  (await findTarget(db, channel, id)) ?? notFound("target");

type Destination = { url: string; streamKey: string; hostname: string };

/** Throws 422. A name is resolved at each connection, not now. */
function destinationOf(app: App, url: string, streamKey: string | undefined): Destination {
  try {
    const read = readPublishUrl(url.trim(), streamKey ?? null);
    const literal = literalOf(read.hostname);
    if (literal !== null) requireAllowed([literal], read.hostname, rangesOf(app.config.webhook_allow_cidrs));
    return { url: read.href, streamKey: read.streamKey, hostname: read.hostname };
  } catch (error) {
    if (error instanceof PublishUrlInvalid) return invalid("url", error.message);
    if (error instanceof BlockedDestination) return invalid("url", `cannot be sent to: ${error.message}`);
    throw error;
  }
}

/** Throws 422 for a URL that cannot be sent to, and `simulcast_target_limit_reached`. */
export async function createTarget(
  tx: Db,
  app: App,
  channel: Channel,
  body: v.InferOutput<typeof TargetWrite>,
): Promise<SimulcastTargetRow> {
  const { url, streamKey, hostname } = destinationOf(app, body.url, body.stream_key);
  const existing = await tx.select({ n: count() }).from(targets).where(eq(targets.channelId, channel.id)).get();
  if ((existing?.n ?? 0) >= MAX_TARGETS) {
    const message = `A channel has at most ${MAX_TARGETS} targets; delete one first.`;
    throw new HttpError(422, "simulcast_target_limit_reached", message);
  }
  const now = app.clock.now();
  const created = await tx
    .insert(targets)
    .values({
      tenantId: channel.tenantId,
      channelId: channel.id,
      name: body.name ?? hostname,
      url,
      streamKey: sealStreamKey(app, channel.tenantId, streamKey),
      enabled: body.enabled,
      createdAt: now,
      updatedAt: now,
    })
    .returning()
    .get();
  await emit(tx, app, "live.target.created", targetEvent(channel, created));
  return created;
}

/**
 * Changes the given fields. A new URL needs the stream key too: otherwise who may change targets, but does not know the
 * key, could have it sent to a server of their own. Throws 404 and 422.
 */
export async function updateTarget(
  tx: Db,
  app: App,
  { channel, id, patch }: { channel: Channel; id: number; patch: v.InferOutput<typeof TargetPatch> },
): Promise<SimulcastTargetRow> {
  await requireTarget(tx, channel, id);
  const destination = patch.url === undefined ? null : destinationOf(app, patch.url, patch.stream_key);
  const streamKey = destination?.streamKey ?? patch.stream_key;
  const updated = await tx
    .update(targets)
    .set({
      ...(destination && { url: destination.url }),
      ...(streamKey !== undefined && { streamKey: sealStreamKey(app, channel.tenantId, streamKey) }),
      ...(patch.name !== undefined && { name: patch.name }),
      ...(patch.enabled !== undefined && { enabled: patch.enabled }),
      updatedAt: app.clock.now(),
    })
    .where(isOf(channel, id))
    .returning()
    .get();
  await emit(tx, app, "live.target.updated", targetEvent(channel, updated));
  return updated;
}

/** Throws 404. */
export async function deleteTarget(tx: Db, app: App, channel: Channel, id: number): Promise<void> {
  const target = await requireTarget(tx, channel, id);
  await tx.delete(targets).where(isOf(channel, id));
  await emit(tx, app, "live.target.deleted", targetEvent(channel, target));
}

/** The tenant and the `data` of events of a target. */
export const targetEvent = (
  { channel }: Pick<Channel, "channel">,
  { id, name, channelId, tenantId }: SimulcastTargetRow,
) => ({ tenantId, data: { channel_id: channelId, channel, target_id: id, target: name } });

/** The enabled targets of channels, by channel, with their stream keys, for the ingest process. */
export async function sentTargets(app: App, channelIds: readonly number[]): Promise<Map<number, SentTarget[]>> {
  const found = new Map<number, SentTarget[]>(channelIds.map((id) => [id, []]));
  if (channelIds.length === 0) return found;
  const isEnabled = and(inArray(targets.channelId, [...channelIds]), eq(targets.enabled, true));
  for (const row of await app.db.select().from(targets).where(isEnabled).orderBy(asc(targets.id)).all()) {
    const streamKey = readStreamKey(app, row);
    if (streamKey !== null) found.get(row.channelId)?.push({ id: row.id, url: row.url, streamKey });
  }
  return found;
}

/** A target as the API shows it. */
export function toTarget(app: App, channel: Channel, row: SimulcastTargetRow): v.InferInput<typeof SimulcastTarget> {
  const isReadable = readStreamKey(app, row) !== null;
  const state = row.enabled
    ? targetStates(app)
        .get(channel.id)
        ?.find(({ id }) => id === row.id)
    : undefined;
  const isElsewhere = channel.startedAt !== null && liveRegistry(app).running(channel.channel) === undefined;
  return toRecord(SimulcastTarget, row, {
    status: state?.status ?? (isElsewhere && row.enabled ? null : "idle"),
    status_changed_at: iso(state?.sinceMs ?? null),
    error: isReadable ? (state?.error ?? null) : UNREADABLE,
    sent_bytes: state?.sentBytes ?? 0,
    dropped_frames: state?.droppedFrames ?? 0,
  });
}
