import type { AssetRow } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import { HttpError } from "../../lib/errors.ts";
import { findPublicAsset } from "../assets/queries.ts";
import type { PlaybackTokens } from "../playback/token.ts";
import { isActiveTenant } from "../tenants/active.ts";
import { assetRef, type PlaybackEvent } from "./beacon.ts";

export type AcceptedEvent = { asset: Pick<AssetRow, "id" | "tenantId" | "durationSeconds">; event: PlaybackEvent };

/**
 * Keeps the events that can belong to a view: of an asset that is ready, of an active tenant, and with a valid token
 * where playback is signed. All other events are dropped: they cost a lookup, but neither memory nor a database write.
 */
export async function acceptEvents(
  app: App,
  tokens: PlaybackTokens,
  events: readonly PlaybackEvent[],
): Promise<AcceptedEvent[]> {
  // The events of a batch usually have one asset and one token: verify each pair once.
  const known = new Map<string, AssetRow | null>();
  const accepted: AcceptedEvent[] = [];
  for (const event of events) {
    const ref = assetRef(event);
    const name = JSON.stringify([ref, event.token ?? null]);
    const asset = known.get(name) ?? (known.has(name) ? null : await viewable(app, tokens, ref, event.token ?? null));
    known.set(name, asset);
    if (asset) accepted.push({ asset, event });
  }
  return accepted;
}

async function viewable(app: App, tokens: PlaybackTokens, ref: string, token: string | null): Promise<AssetRow | null> {
  const asset = await findPublicAsset(app, ref);
  if (asset?.playbackStatus !== "ready" || !(await isActiveTenant(app, asset.tenantId))) return null;
  if (asset.playbackPolicy === "public") return asset;
  if (token === null) return null;
  try {
    await tokens.verify(asset, token);
    return asset;
  } catch (error) {
    if (error instanceof HttpError) return null;
    throw error;
  }
}
