import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import Provider from "oidc-provider";

export type Account = { sub: string } & Record<string, unknown>;

/**
 * An OpenID provider on loopback. Each person is `account.current`, who agrees to everything, or declines where it is null. `redirectUri`
 * may be set later.
 */
export async function startProvider({ secret = "client-secret" }: { secret?: string } = {}) {
  const account: { current: Account | null } = { current: null };
  const client = {
    client_id: "vodbox",
    client_secret: secret,
    redirect_uris: ["http://vodbox.test/api/v1/session/oidc/callback"],
    grant_types: ["authorization_code"],
    response_types: ["code"],
  };
  let handle: (request: any, response: any) => void = () => {};
  const server = createServer((request, response) => handle(request, response));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const provider = new Provider(issuer, {
    clients: [],
    pkce: { required: () => true },
    features: { devInteractions: { enabled: false } },
    claims: { email: ["email", "email_verified"], profile: ["name", "tenant", "groups"] },
    cookies: { keys: ["test"] },
    interactions: { url: (_ctx: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    async findAccount(_ctx: unknown, sub: string) {
      const { current } = account;
      return current?.sub === sub ? { accountId: sub, claims: async () => current } : undefined;
    },
    async loadExistingGrant(ctx: any) {
      const grant = new ctx.oidc.provider.Grant({
        clientId: ctx.oidc.client.clientId,
        accountId: ctx.oidc.session.accountId,
      });
      grant.addOIDCScope("openid email profile");
      await grant.save();
      return grant;
    },
  } as never);
  const callback = provider.callback();
  // The client is looked up with each request, so that its redirect URI may be set after the server has its port.
  (provider.Client as any).find = async (id: string) =>
    id === client.client_id ? new (provider.Client as any)(client) : undefined;
  handle = (request, response) => {
    if (!request.url.startsWith("/interaction/")) return callback(request, response);
    const { current } = account;
    const result = current ? { login: { accountId: current.sub } } : { error: "access_denied" };
    void provider.interactionFinished(request, response, result as never, { mergeWithLastSubmission: false });
  };
  return {
    issuer,
    account,
    set redirectUri(uri: string) {
      client.redirect_uris = [uri];
    },
    close: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}

/** Follows redirects at the provider with its cookies, as a browser does, up to the callback. */
export async function throughProvider(url: string, issuer: string): Promise<string> {
  const jar = new Map<string, string>();
  let at = url;
  while (at.startsWith(issuer)) {
    const cookies = [...jar].map(([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(at, { redirect: "manual", headers: { cookie: cookies } });
    for (const one of response.headers.getSetCookie()) {
      const [name = "", value = ""] = (one.split(";")[0] ?? "").split("=");
      jar.set(name, value);
    }
    const location = response.headers.get("location");
    if (location === null) throw new Error(`${response.status} ${await response.text()}`);
    at = new URL(location, at).href;
  }
  return at;
}
