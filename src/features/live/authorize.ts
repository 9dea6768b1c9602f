import { isIP } from "node:net";
import { type App, forApp } from "#app.ts";
import { HttpError, sameSecret, sha256 } from "#lib/base";
import { countWindows, tooMany } from "#platform/http/limits.ts";
import type { PlaybackTokens } from "../playback/token.ts";
import { type CachedChannel, channelCache } from "./channel-cache.ts";
import { isPublishToken } from "./publish-token.ts";
import { type AuthQuery, channelOf, pathOf } from "./schema.ts";

/** Wrong stream keys for one path from one address, before further attempts are refused. */
const WRONG_KEYS = { requests: 10, seconds: 60 };
const wrongKeys = forApp(({ cache }) => countWindows(WRONG_KEYS, { name: "wrong_stream_keys", redis: cache.redis }));

/** Compared with when there is no channel, so that the response takes as long. */
const NOBODYS = sha256("no channel");

/** One response for all reasons, so that it does not reveal which channels exist. */
const refused = () =>
  new HttpError(403, "channel_refused", "This channel, user, stream key or token is not allowed for this action.");

/**
 * Whether the gateway may let a client publish or read. `peer`: the gateway's own address, for a gateway that does not
 * report the client's. Throws 403 `channel_refused`, and 429 after too many wrong stream keys.
 */
export async function authorize(app: App, tokens: PlaybackTokens, request: AuthQuery, peer: string): Promise<void> {
  const channel = channelOf(request.path);
  if (channel === null) throw refused();
  if (request.action === "publish") return void (await authorizePublish(app, channel, request, peer));
  if (request.action === "read" || request.action === "playback") return mayRead(app, tokens, channel, request);
  throw refused();
}

type PublishCredentials = Pick<AuthQuery, "user" | "password" | "token" | "query" | "ip">;

/** The channel that a client may publish to. Throws as `authorize`. */
export async function authorizePublish(
  app: App,
  channel: string,
  request: PublishCredentials,
  peer: string,
): Promise<CachedChannel> {
  const query = new URLSearchParams(request.query ?? "");
  const keys = [request.password, request.token, query.get("key"), query.get("token")].filter(isGiven);
  // RTSP clients first connect without credentials, to be challenged: these are not failed attempts.
  if (keys.length === 0) throw refused();
  const from = isIP(request.ip ?? "") === 0 ? peer : (request.ip as string);
  const { exceeded, waitSeconds } = await wrongKeys(app).hasAllowance(from, channel);
  if (exceeded) throw tooMany(waitSeconds);
  const hashes = keys.map(sha256);
  const isAllowed = (known: CachedChannel | undefined): known is CachedChannel => {
    const hasKey = hashes.map((hash) => sameSecret(hash, known?.streamKeyHash ?? NOBODYS)).includes(true);
    if (!known?.enabled) return false;
    if (hasKey) return isPublisher(known, request.user || query.get("user") || "");
    // Who may change the channel has issued it, so it needs no user name.
    return keys.some((key) => isPublishToken(app, known, key));
  };
  const known = await channelCache(app).find(channel);
  if (isAllowed(known)) return known;
  // The channel or the key may be new, from another process.
  const current = await channelCache(app).findNow(channel);
  if (isAllowed(current)) return current;
  await wrongKeys(app).countAddress(from, channel);
  throw refused();
}

const isPublisher = ({ publisher }: CachedChannel, user: string) => publisher === null || sameSecret(user, publisher);

async function mayRead(app: App, tokens: PlaybackTokens, channel: string, request: AuthQuery): Promise<void> {
  const known = await channelCache(app).find(channel);
  if (!known) throw refused();
  if (known.playbackPolicy === "public") return;
  const query = new URLSearchParams(request.query ?? "");
  const tokensGiven = [request.password, request.token, query.get("token"), query.get("jwt")].filter(isGiven);
  for (const token of tokensGiven) if (await isGood(tokens, known.tenantId, pathOf(channel), token)) return;
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
