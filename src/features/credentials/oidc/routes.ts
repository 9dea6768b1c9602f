import type { App } from "#app.ts";
import { HttpError, notFound, randomName } from "#lib/base";
import { type Context, type Reply, type Route, route } from "#platform/http/route.ts";
import { hashPassword } from "../devices/passwords.ts";
import { begin } from "../sessions/begin.ts";
import { insertUserSession } from "../sessions/sign-in.ts";
import { claimsOf } from "./claims.ts";
import { linkedUser } from "./link-user.ts";
import { addPending, takePending } from "./pending.ts";
import { callbackPath, isOidcConfigured, library, provider } from "./provider.ts";

/* Sign-in with an OpenID provider: authorization code with PKCE (RFC 7636). */

const open = { method: "GET", credential: "none", tag: "Sessions", hidden: true, responses: { 302: null } } as const;

const consoleUrl = (app: App) => `${app.baseUrl()}/console/assets`;

export const oidcRoutes: Route[] = [
  route({
    ...open,
    path: "/api/v1/session/oidc/start",
    summary: "Sign in with the OpenID provider: go to its page",
    async handle({ app, headers }) {
      if (!isOidcConfigured(app.config)) return notFound("OpenID provider");
      const client = await library();
      const expected = {
        state: client.randomState(),
        nonce: client.randomNonce(),
        verifier: client.randomPKCECodeVerifier(),
      };
      try {
        const { configuration } = await provider(app);
        const url = client.buildAuthorizationUrl(configuration, {
          redirect_uri: `${app.baseUrl()}${callbackPath}`,
          scope: "openid email profile",
          state: expected.state,
          nonce: expected.nonce,
          code_challenge: await client.calculatePKCECodeChallenge(expected.verifier),
          code_challenge_method: "S256",
        });
        return redirect(url.href, addPending(app, headers, expected));
      } catch (error) {
        app.log.warn({ err: messageOf(error) }, "the OpenID provider cannot be used");
        // A person has followed a link; programs get the error itself.
        if (/\btext\/html\b/.test(headers.get("accept") ?? ""))
          return redirect(`${consoleUrl(app)}?oidc_error=unavailable`);
        throw new HttpError(502, "oidc_unavailable", "The OpenID provider does not respond; try again later.");
      }
    },
  }),
  route({
    ...open,
    path: callbackPath,
    audited: true,
    operationId: "createOidcSession",
    summary: "Complete a sign-in with the OpenID provider",
    async handle(context) {
      const { app, headers, url } = context;
      if (!isOidcConfigured(app.config)) return notFound("OpenID provider");
      const begun = takePending(app, headers, url.searchParams.get("state") ?? "");
      try {
        if (!begun) throw new HttpError(400, "oidc_failed", "The sign-in was not begun in this browser.");
        const claims = await claimsOf(app, url.search, begun.pending);
        const { headers: session } = await beginSession(context, claims);
        return redirect(consoleUrl(app), session["set-cookie"] as string, begun.cookie);
      } catch (error) {
        const isRefused = error instanceof HttpError && error.status === 401;
        app.log.info({ err: messageOf(error) }, "a sign-in with the OpenID provider did not succeed");
        const reason = isRefused ? "refused" : "failed";
        return redirect(`${consoleUrl(app)}?oidc_error=${reason}`, ...(begun ? [begun.cookie] : []));
      }
    },
  }),
];

/** Only this part counts as an attempt, one after another: the others of the address do not wait for the provider. */
async function beginSession(context: Context, claims: Parameters<typeof linkedUser>[2]): Promise<Reply> {
  const { app } = context;
  const unusable = await hashPassword(randomName(43));
  return begin(context, (client) =>
    app.write(async (tx) => insertUserSession(tx, app, await linkedUser(tx, app, claims, unusable), client)),
  );
}

/** With the cause: the library's own messages name only what it was about. */
function messageOf(error: unknown): string {
  const { message, cause } = error as Error;
  return cause instanceof Error ? `${message} (${cause.message})` : message;
}

function redirect(location: string, ...cookies: string[]): Response {
  const response = new Response(null, { status: 302, headers: { location, "cache-control": "no-store" } });
  for (const cookie of cookies) response.headers.append("set-cookie", cookie);
  return response;
}
