import { createHmac } from "node:crypto";
import type { App } from "#app.ts";
import { HttpError, memoizeByObject, notFound, randomName, sameSecret } from "#lib/base";
import { sealText, unsealText } from "#platform/config/sealed-text.ts";
import { type Context, type Reply, type Route, route } from "#platform/http/route.ts";
import { hashPassword } from "../devices/passwords.ts";
import { begin } from "../sessions/begin.ts";
import { insertUserSession } from "../sessions/sign-in.ts";
import { type Claims, linkedUser } from "./link-user.ts";
import { callbackPath, isOidcConfigured, library, provider } from "./provider.ts";

/*
 * Sign-in with an OpenID provider: authorization code with PKCE (RFC 7636). State, nonce and verifier are in a cookie, encrypted, so
 * that only the browser that began a sign-in can complete it.
 */

const COOKIE = "vodbox_oidc";
const LIVES_SECONDS = 600;
const open = { method: "GET", credential: "none", tag: "Sessions", hidden: true, responses: { 302: null } } as const;

type Pending = { state: string; nonce: string; verifier: string; expiresAt: number };

const keyOf = memoizeByObject((secrets: App["secrets"]) =>
  createHmac("sha256", secrets.signing_secret).update("oidc").digest(),
);

/** SameSite=Lax: the provider's page leads here. */
const cookie = (app: App, value: string, maxAge: number) =>
  `${COOKIE}=${value}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${maxAge}${app.baseUrl().startsWith("https:") ? "; Secure" : ""}`;

/** What the browser has begun; null when that is not recent, or of another browser. */
function pendingOf(app: App, headers: Headers): Pending | null {
  const [, value = ""] =
    (headers.get("cookie") ?? "")
      .split(";")
      .map((part) => part.trim().split("="))
      .find(([name]) => name === COOKIE) ?? [];
  try {
    const pending = JSON.parse(unsealText(keyOf(app.secrets), COOKIE, value)) as Pending;
    return pending.expiresAt > app.clock.now() ? pending : null;
  } catch {
    return null;
  }
}

export const oidcRoutes: Route[] = [
  route({
    ...open,
    path: "/api/v1/session/oidc/start",
    summary: "Sign in with the OpenID provider: go to its page",
    async handle({ app }) {
      if (!isOidcConfigured(app.config)) return notFound("OpenID provider");
      const client = await library();
      const state = client.randomState();
      const nonce = client.randomNonce();
      const verifier = client.randomPKCECodeVerifier();
      const configuration = await provider(app).catch((error: Error) => unreachable(app, error));
      const url = client.buildAuthorizationUrl(configuration, {
        redirect_uri: `${app.baseUrl()}${callbackPath}`,
        scope: "openid email profile",
        state,
        nonce,
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
      });
      const pending: Pending = { state, nonce, verifier, expiresAt: app.clock.now() + LIVES_SECONDS * 1000 };
      const sealed = sealText(keyOf(app.secrets), COOKIE, JSON.stringify(pending));
      return redirect(url.href, cookie(app, sealed, LIVES_SECONDS));
    },
  }),
  route({
    ...open,
    path: callbackPath,
    audited: true,
    operationId: "createOidcSession",
    summary: "Complete a sign-in with the OpenID provider",
    async handle(context) {
      const { app } = context;
      if (!isOidcConfigured(app.config)) return notFound("OpenID provider");
      const console = `${app.baseUrl()}/console/assets`;
      try {
        const { headers } = await beginSession(context);
        const response = redirect(console, headers["set-cookie"] as string);
        response.headers.append("set-cookie", cookie(app, "", 0));
        return response;
      } catch (error) {
        const isRefused = error instanceof HttpError && error.status === 401;
        app.log.info({ err: (error as Error).message }, "a sign-in with the OpenID provider did not succeed");
        return redirect(`${console}?oidc_error=${isRefused ? "refused" : "failed"}`, cookie(app, "", 0));
      }
    },
  }),
];

function beginSession(context: Context): Promise<Reply> {
  const { app, headers } = context;
  return begin(context, async (client) => {
    const pending = pendingOf(app, headers);
    if (pending === null) throw new HttpError(400, "oidc_failed", "The sign-in was not begun in this browser.");
    const claims = await claimsOf(app, context.url, pending);
    const unusable = await hashPassword(randomName(43));
    return app.write(async (tx) => insertUserSession(tx, app, await linkedUser(tx, app, claims, unusable), client));
  });
}

/** What the provider says about the person. Throws for a state, code, signature or nonce that is not right. */
async function claimsOf(app: App, { search, searchParams }: URL, pending: Pending): Promise<Claims> {
  if (!sameSecret(searchParams.get("state") ?? "", pending.state))
    throw new HttpError(400, "oidc_failed", "The state is not that of the sign-in.");
  const client = await library();
  const configuration = await provider(app);
  const tokens = await client.authorizationCodeGrant(
    configuration,
    new URL(`${app.baseUrl()}${callbackPath}${search}`),
    {
      pkceCodeVerifier: pending.verifier,
      expectedState: pending.state,
      expectedNonce: pending.nonce,
      idTokenExpected: true,
    },
  );
  const claims = tokens.claims() as Claims | undefined;
  if (!claims) throw new HttpError(400, "oidc_failed", "The provider sent no ID token.");
  // Providers may give claims of scopes only there (OpenID Connect Core 1.0, 5.4).
  const more = configuration.serverMetadata().userinfo_endpoint
    ? await client.fetchUserInfo(configuration, tokens.access_token, claims.sub)
    : {};
  return { ...more, ...claims };
}

function unreachable(app: App, error: Error): never {
  app.log.warn({ err: error.message }, "the OpenID provider cannot be reached");
  throw new HttpError(502, "oidc_unavailable", "The OpenID provider does not respond; try again later.");
}

const redirect = (location: string, setCookie: string): Response =>
  new Response(null, { status: 302, headers: { location, "set-cookie": setCookie, "cache-control": "no-store" } });
