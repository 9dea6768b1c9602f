import { createHmac } from "node:crypto";
import type { App } from "#app.ts";
import { memoizeByObject, sameSecret } from "#lib/base";
import { sealText, unsealText } from "#platform/config/sealed-text.ts";
import type { Expected } from "./claims.ts";

/*
 * What a browser has begun is in its cookie, encrypted, so that only the browser that began a sign-in can complete it. The last ones are
 * in it: people have several tabs.
 */

const COOKIE = "vodbox_oidc";
const LIVES_SECONDS = 600;
const MAX_PENDING = 4;

export type Pending = Expected & { expiresAt: number };

const keyOf = memoizeByObject((secrets: App["secrets"]) =>
  createHmac("sha256", secrets.signing_secret).update("oidc").digest(),
);

/** The sign-ins that the browser has begun recently, oldest first. */
export function pendingOf(app: App, headers: Headers): Pending[] {
  const [, value = ""] =
    (headers.get("cookie") ?? "")
      .split(";")
      .map((part) => part.trim().split("="))
      .find(([name]) => name === COOKIE) ?? [];
  try {
    const pending = JSON.parse(unsealText(keyOf(app.secrets), COOKIE, value)) as Pending[];
    return pending.filter(({ expiresAt }) => expiresAt > app.clock.now());
  } catch {
    return [];
  }
}

/** The one with this state, and the cookie without it. Undefined without one. */
export function takePending(
  app: App,
  headers: Headers,
  state: string,
): { pending: Pending; cookie: string } | undefined {
  const all = pendingOf(app, headers);
  const pending = all.find((one) => sameSecret(state, one.state));
  const rest = all.filter((one) => one !== pending);
  return pending && { pending, cookie: cookieOf(app, rest) };
}

/** The cookie of a browser that has also begun `expected`. */
export const addPending = (app: App, headers: Headers, expected: Expected): string =>
  cookieOf(app, [
    ...pendingOf(app, headers).slice(1 - MAX_PENDING),
    { ...expected, expiresAt: app.clock.now() + LIVES_SECONDS * 1000 },
  ]);

/** SameSite=Lax: the provider's page leads here. */
function cookieOf(app: App, pending: readonly Pending[]): string {
  const value = pending.length === 0 ? "" : sealText(keyOf(app.secrets), COOKIE, JSON.stringify(pending));
  const attributes = `Path=/; HttpOnly; SameSite=Lax; Max-Age=${pending.length === 0 ? 0 : LIVES_SECONDS}`;
  return `${COOKIE}=${value}; ${attributes}${app.baseUrl().startsWith("https:") ? "; Secure" : ""}`;
}
