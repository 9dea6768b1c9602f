import type { App } from "#app.ts";
import { HttpError, yieldToEventLoop } from "#lib/base";
import type { Context } from "#platform/http/route.ts";
import { admit } from "#platform/limits/expensive.ts";
import { findPublicAsset } from "../assets/queries.ts";
import type { PlaybackTokens } from "../playback/token.ts";
import { isActiveTenant } from "../tenants/active.ts";
import { assetRef, type PlaybackEvent } from "./beacon.ts";
import type { Subject } from "./subject.ts";

export type AcceptedEvent = { subject: Subject; event: PlaybackEvent };

/** A live channel, by its name, that a viewer with this token may watch; null for any other. */
export type FindChannel = (
  app: App,
  tokens: PlaybackTokens,
  channel: string,
  token: string | null,
) => Promise<Subject | null>;

/** Requests with more events than this wait in the queue for batches. */
const FEW_EVENTS = 8;

/** Does `take` for a request with `count` events, in the queue for batches when they are many. */
export async function takeEvents<T>(
  { app, address, signal }: Pick<Context, "app" | "address" | "signal">,
  count: number,
  take: () => Promise<T>,
): Promise<T> {
  if (count <= FEW_EVENTS) return take();
  const permit = await admit(app, "beacons", address, signal);
  try {
    await yieldToEventLoop();
    return await take();
  } finally {
    permit.release();
  }
}

type Access = { tokens: PlaybackTokens; findChannel: FindChannel };

/**
 * Keeps the events that can belong to a view: of an asset that is ready or a channel that is live, of an active tenant, and
 * with a valid token where playback is signed. All other events are dropped: they cost a lookup, but neither memory nor a
 * database write.
 */
export async function acceptEvents(
  app: App,
  { tokens, findChannel }: Access,
  events: readonly PlaybackEvent[],
): Promise<AcceptedEvent[]> {
  // The events of a batch usually have one subject and one token: verify each pair once.
  const known = new Map<string, Subject | null>();
  const accepted: AcceptedEvent[] = [];
  for (const event of events) {
    const ref = assetRef(event);
    const token = event.token ?? null;
    const find = () =>
      event.live_channel ? findChannel(app, tokens, event.live_channel, token) : viewable(app, tokens, ref, token);
    const name = JSON.stringify([ref, event.live_channel, token]);
    const subject = known.get(name) ?? (known.has(name) ? null : await find());
    known.set(name, subject);
    if (subject) accepted.push({ subject, event });
  }
  return accepted;
}

async function viewable(app: App, tokens: PlaybackTokens, ref: string, token: string | null): Promise<Subject | null> {
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
