import { createHmac } from "node:crypto";
import { type App, forApp } from "#app.ts";
import { hmac, sameSecret } from "#lib/base";
import type { CachedChannel } from "./channel-cache.ts";

type Publishable = Pick<CachedChannel, "id" | "streamKeyHash">;

const secretOf = forApp(({ secrets }) => ({
  secret: createHmac("sha256", secrets.signing_secret).update("publish tokens").digest("base64url"),
}));

/** The time, in base 36, and the signature. */
const FORM = /^live_([0-9a-z]{1,12})\.([\w-]{43})$/;

/** With the hash of the stream key: another key ends the tokens that were made before it. */
const signature = (app: App, { id, streamKeyHash }: Publishable, until: string) =>
  hmac(secretOf(app).secret, `${id} ${streamKeyHash} ${until}`);

/**
 * Takes the place of the stream key of one channel until `expiresAt` (milliseconds since 1970), for a page in a browser,
 * which never has the key. It begins a stream; one that has begun continues after the end of its token.
 */
export function newPublishToken(app: App, channel: Publishable, expiresAt: number): string {
  const until = expiresAt.toString(36);
  return `live_${until}.${signature(app, channel, until)}`;
}

/** Whether `token` is one of this channel, and has not expired. */
export function isPublishToken(app: App, channel: Publishable, token: string): boolean {
  const [, until, signed] = FORM.exec(token) ?? [];
  if (until === undefined || signed === undefined) return false;
  return sameSecret(signed, signature(app, channel, until)) && Number.parseInt(until, 36) > app.clock.now();
}
