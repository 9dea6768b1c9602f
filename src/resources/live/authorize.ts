import { isIP } from "node:net";
import { type App, forApp } from "../../app.ts";
import { countWindows, tooMany } from "../../http/limits.ts";
import { HttpError } from "../../lib/errors.ts";
import { sameSecret, sha256 } from "../../lib/tokens.ts";
import type { PlaybackTokens } from "../playback/token.ts";
import { type CachedChannel, channelCache } from "./channel-cache.ts";
import { type AuthQuery, channelOf, pathOf } from "./schema.ts";

/** Wrong stream keys for one path from one address, before the next ones go unanswered. */
const WRONG_KEYS = { requests: 10, seconds: 60 };
const wrongKeys = forApp(() => countWindows(WRONG_KEYS));

/** Compared with where there is no channel, so that it takes as long. */
const NOBODYS = sha256("no channel");

/** One for all reasons: a stranger learns nothing about which channels there are. */
const refused = () =>
  new HttpError(403, "channel_refused", "This channel, user, stream key or token is refused for this action.");

/**
 * Whether the gateway may let somebody publish or read. `peer`: the gateway's own address, for one that tells none of
 * its client. Throws 403 `channel_refused`, and 429 after too many wrong stream keys.
 */
export async function authorize(app: App, tokens: PlaybackTokens, asked: AuthQuery, peer: string): Promise<void> {
  const channel = channelOf(asked.path);
  if (channel === null) throw refused();
  if (asked.action === "publish") return mayPublish(app, channel, asked, peer);
  if (asked.action === "read" || asked.action === "playback") return mayRead(app, tokens, channel, asked);
  throw refused();
}

async function mayPublish(app: App, channel: string, asked: AuthQuery, peer: string): Promise<void> {
  const query = new URLSearchParams(asked.query ?? "");
  const given = [asked.password, asked.token, query.get("key"), query.get("token")].filter(isGiven);
  // Clients of RTSP come without credentials first, to be asked for them: those have guessed nothing.
  if (given.length === 0) throw refused();
  const from = isIP(asked.ip ?? "") === 0 ? peer : (asked.ip as string);
  const { exceeded, waitSeconds } = await wrongKeys(app).lookAtAddress(from, channel);
  if (exceeded) throw tooMany(waitSeconds);
  const known = await channelCache(app).find(channel);
  const hasKey = given.map((key) => sameSecret(sha256(key), known?.streamKeyHash ?? NOBODYS)).includes(true);
  if (known && hasKey && isPublisher(known, asked.user || query.get("user") || "")) return;
  await wrongKeys(app).countAddress(from, channel);
  throw refused();
}

const isPublisher = ({ publisher }: CachedChannel, user: string) => publisher === null || sameSecret(user, publisher);

async function mayRead(app: App, tokens: PlaybackTokens, channel: string, asked: AuthQuery): Promise<void> {
  const known = await channelCache(app).find(channel);
  if (!known) throw refused();
  if (known.playbackPolicy === "public") return;
  const query = new URLSearchParams(asked.query ?? "");
  const given = [asked.password, asked.token, query.get("token"), query.get("jwt")].filter(isGiven);
  for (const token of given) if (await isGood(tokens, known.tenantId, pathOf(channel), token)) return;
  throw refused();
}

const isGiven = (value: string | null | undefined): value is string => value != null && value !== "";

async function isGood(tokens: PlaybackTokens, tenantId: number, subject: string, token: string): Promise<boolean> {
  try {
    await tokens.verify({ tenantId, externalId: subject }, token);
    return true;
  } catch (error) {
    if (error instanceof HttpError && error.code === "playback_token_invalid") return false;
    throw error;
  }
}
