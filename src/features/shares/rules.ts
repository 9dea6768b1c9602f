import { createHmac } from "node:crypto";
import { type App, forApp } from "#app.ts";
import { HttpError, hmac } from "#lib/base";
import type { ShareRow } from "#storage/db/schema.ts";

export const SHARE_STATUSES = ["active", "expired", "played_out"] as const;
export type ShareStatus = (typeof SHARE_STATUSES)[number];

/** Whether a share that exists can be played by new viewers. `now`: in milliseconds since the epoch. */
export function shareStatus(
  { expiresAt, maxPlays, playCount }: Pick<ShareRow, "expiresAt" | "maxPlays" | "playCount">,
  now: number,
): ShareStatus {
  if (expiresAt !== null && expiresAt <= now) return "expired";
  return maxPlays !== null && playCount >= maxPlays ? "played_out" : "active";
}

/** 410 `share_ended`. */
export const shareEnded = () =>
  new HttpError(410, "share_ended", "This share has ended; ask the sender for a new link.");

/** Not the key of tokens: what is derived from it is in cookies and in tokens. */
const keyOf = forApp((app) => ({
  key: createHmac("sha256", app.secrets.signing_secret).update("shares").digest("base64url"),
}));

/** HMAC of the program's secret over what a share's cookie says. */
export const shareMac = (app: App, value: string) => hmac(keyOf(app).key, value);

/**
 * Identifies the password of a share in playback tokens, without saying anything about it: a changed password ends the
 * tokens of viewers who knew the former one. Empty without a password.
 */
export const passwordMark = (app: App, { id, passwordHash }: Pick<ShareRow, "id" | "passwordHash">) =>
  passwordHash === null ? "" : shareMac(app, `password ${id} ${passwordHash}`).slice(0, 16);
