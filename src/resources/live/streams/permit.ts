import { eq } from "drizzle-orm";
import { liveChannels, tenants } from "../../../../storage/db/schema.ts";
import type { App } from "../../../app.ts";
import { HttpError } from "../../../lib/errors.ts";
import type { Permission, PublishQuestion } from "../../../live/ingest/messages.ts";
import { remainingStorage } from "../../tenants/quota.ts";
import { authorizePublish } from "../authorize.ts";
import { channelOf, pathOf } from "../schema.ts";
import { isPublishedElsewhere } from "./rows.ts";

/** The application of publish URLs: `rtmp://host/live`. */
export const PUBLISH_APPLICATION = pathOf("").slice(0, -1);

/** Whether a publisher of the embedded gateway may publish: the rules of the callback for external ones. */
export async function permitPublish(
  app: App,
  { app: application, name, query, address }: PublishQuestion,
): Promise<Permission> {
  const channel = application === PUBLISH_APPLICATION ? channelOf(pathOf(name)) : null;
  if (channel === null) return { accepted: false, reason: "refused" };
  try {
    const { id } = await authorizePublish(app, channel, { query, ip: address }, address);
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
      channel: {
        channelId: row.id,
        tenantId: row.tenantId,
        channel: row.channel,
        record: isStored,
        dvrSeconds: row.dvrSeconds,
        isLowLatency: row.lowLatency,
        takeover: row.takeover,
        isEncoded: isStored && row.encodingProfile !== null,
        maxRecordedBytes: isStored ? remainingStorage(app, tenant) : null,
      },
    };
  } catch (error) {
    if (!(error instanceof HttpError)) throw error;
    return { accepted: false, reason: error.status === 429 ? "limit" : "refused" };
  }
}
