import { and, eq, isNull, ne, sql } from "drizzle-orm";
import type { App } from "#app.ts";
import { liveQuotasOf, remainingStorage } from "#features/tenants/quota.ts";
import { HttpError, sha256 } from "#lib/base";
import type { Permission, PublishQuestion } from "#live/ingest/messages.ts";
import { databaseFileOf } from "#platform/config/database-file.ts";
import { prepared } from "#storage/db/prepared.ts";
import { type LiveChannelRow, liveChannels, liveStreams, type TenantRow, tenants } from "#storage/db/schema.ts";
import { authorizePublish } from "../authorize.ts";
import { liveRegistry } from "../registry.ts";
import { channelOf, LIVE_APPLICATION, pathOf } from "../schema.ts";
import { sentTargets } from "../simulcast/targets.ts";
import { isPublishedElsewhere } from "./rows.ts";

/** So many characters of the hash distinguish the keys of a channel. */
const KEY_ID_LENGTH = 16;

/** The application of URLs with the stream key alone, as of Mux: `rtmp://host/app/<stream key>`. */
const KEY_APPLICATION = "app";

const nameOfKey = prepared((db) =>
  db
    .select({ channel: liveChannels.channel })
    .from(liveChannels)
    .where(and(eq(liveChannels.streamKeyHash, sql.placeholder("hash")), isNull(liveChannels.revokedAt)))
    .prepare(),
);
/** A key has 238 bits: it need not be kept from being guessed. Null for an unknown one. */
const channelOfKey = async (app: App, key: string): Promise<string | null> =>
  (await nameOfKey(app.db).get({ hash: sha256(key) }))?.channel ?? null;

/** Whether a publisher of the embedded gateway may publish: the rules of the callback for external ones. */
export async function permitPublish(
  app: App,
  { app: application, name, query, address }: PublishQuestion,
): Promise<Permission> {
  const isKey = application === KEY_APPLICATION;
  const named = application === LIVE_APPLICATION ? channelOf(pathOf(name)) : null;
  const channel = isKey ? await channelOfKey(app, name) : named;
  if (channel === null) return { accepted: false, reason: "refused" };
  try {
    const { id, streamKeyHash } = await authorizePublish(
      app,
      channel,
      isKey ? { query, password: name, ip: address } : { query, ip: address },
      address,
    );
    const found = await app.db
      .select()
      .from(liveChannels)
      .innerJoin(tenants, eq(tenants.id, liveChannels.tenantId))
      .where(eq(liveChannels.id, id))
      .get();
    if (!found) return { accepted: false, reason: "refused" };
    const { live_channels: row, tenants: tenant } = found;
    if (!row.takeover && (await isPublishedElsewhere(app, row.id))) return { accepted: false, reason: "taken" };
    const isStored = row.record && app.objects !== null;
    return {
      accepted: true,
      targets: (await sentTargets(app, [row.id])).get(row.id) ?? [],
      channel: {
        channelId: row.id,
        tenantId: row.tenantId,
        channel: row.channel,
        record: isStored,
        dvrSeconds: row.dvrSeconds,
        isLowLatency: row.lowLatency,
        captionsLive: row.captionsLive,
        takeover: row.takeover,
        reconnectMs: row.reconnectSeconds * 1000,
        keyId: streamKeyHash.slice(0, KEY_ID_LENGTH),
        isEncoded: isStored && row.encodingProfile !== null,
        maxStreams: await allowedHere(app, row, tenant),
        maxBitrate: liveQuotasOf(app, tenant).bitrate,
        maxRecordedBytes: isStored ? remainingStorage(app, tenant) : null,
      },
    };
  } catch (error) {
    if (!(error instanceof HttpError)) throw error;
    return { accepted: false, reason: error.status === 429 ? "throttled" : "refused" };
  }
}

/**
 * Streams of the tenant that this server may receive at once: what the plan allows, without other channels on
 * other servers. The ingest process counts its own, because a stream has a row only from its first part on. Null for unlimited.
 */
async function allowedHere(app: App, { id }: LiveChannelRow, tenant: TenantRow): Promise<number | null> {
  const { streams: quota } = liveQuotasOf(app, tenant);
  // What else is unfinished in a file is left by a process that was killed, and is being recovered.
  if (quota === null || databaseFileOf(app.config) !== null) return quota;
  const { tenantId, channelId, endedAt } = liveStreams;
  const isRunning = and(eq(tenantId, tenant.id), ne(channelId, id), isNull(endedAt));
  const running = await app.db.select({ name: liveStreams.name }).from(liveStreams).where(isRunning).all();
  const elsewhere = running.filter(({ name }) => !liveRegistry(app).byName(name));
  return Math.max(0, quota - elsewhere.length);
}
