import type { App } from "#app.ts";
import { randomName, sameSecret } from "#lib/base";
import { isSecureRequest, readCookie, setCookie } from "#platform/http/cookies.ts";
import type { ShareRow } from "#storage/db/schema.ts";
import { passwordMark, shareMac } from "./rules.ts";
import { sharePath } from "./schema.ts";

const COOKIE = "vodbox_share";
const VIEWER_LENGTH = 22;
const LIVES_SECONDS = 12 * 3600;

type Locked = Pick<ShareRow, "id" | "code" | "passwordHash">;

/** Another viewer than all before. */
export const newViewer = () => randomName(VIEWER_LENGTH);

/** The password is in it, so that a changed one must be typed. */
const macOf = (app: App, share: Locked, said: string) =>
  shareMac(app, `viewer ${share.id} ${passwordMark(app, share)} ${said}`);

/**
 * The viewer that the cookie of a share's page names, who has typed the password if the share has one. Null without a
 * cookie, and for one that is expired, altered or from before a change of the password.
 */
export function viewerOf(app: App, share: Locked, headers: Headers): string | null {
  const [viewer = "", until = "", mac = ""] = (readCookie(headers, COOKIE) ?? "").split(".");
  const isValid = /^[A-Za-z0-9]{22}$/.test(viewer) && /^\d{1,11}$/.test(until);
  if (!isValid || !sameSecret(mac, macOf(app, share, `${viewer} ${until}`))) return null;
  return Number(until) * 1000 > app.clock.now() ? viewer : null;
}

/**
 * Set-Cookie headers that `viewerOf` reads: for the page, and for frames in pages of other sites. They are valid for this
 * share only, and are not sent with requests for media.
 */
export function viewerCookies(
  app: App,
  share: Locked,
  viewer: string,
  { headers, basePath }: { headers: Headers; basePath: string },
): string[] {
  const until = Math.floor(app.clock.now() / 1000) + LIVES_SECONDS;
  const value = `${viewer}.${until}.${macOf(app, share, `${viewer} ${until}`)}`;
  const isSecure = isSecureRequest(headers, app.baseUrl());
  return (["watch", "embed"] as const).map((page) =>
    setCookie({
      name: COOKIE,
      value,
      path: basePath + sharePath(page, share.code),
      maxAgeSeconds: LIVES_SECONDS,
      sameSite: page === "watch" ? "Lax" : "frame",
      isSecure,
    }),
  );
}
