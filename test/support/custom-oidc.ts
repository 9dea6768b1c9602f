import { createHash, randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, type JWK, SignJWT } from "jose";

type Claims = Record<string, unknown>;
type Request = { nonce: string; challenge: string; redirectUri: string };

/** What differs between providers. A test changes it at any time. */
export type Behavior = {
  /** Path of the issuer; real ones have none, one without or one with a slash at its end. */
  path: string;
  alg: string;
  claims: Claims;
  userinfo: Claims | null;
  /** Fields of the metadata. */
  metadata: Claims;
  authentication: "client_secret_basic" | "client_secret_post";
  /** Parameters of the callback next to code and state. */
  callback: Record<string, string>;
  /** Responds in place of the provider, by the last part of the path. True: it did. */
  instead?: ((path: string, response: ServerResponse) => boolean | Promise<boolean>) | undefined;
};

const ID = "vodbox";
export const CLIENT_SECRET = "a secret with +/=~ and spaces";

const bodyOf = async (request: IncomingMessage) =>
  new URLSearchParams(Buffer.concat(await request.toArray()).toString());

const formDecoded = (text = "") => decodeURIComponent(text.replaceAll("+", " "));

/** Id and secret of a request at the token endpoint, in the method of the client alone (OAuth 2.0, 2.3.1). */
function isAuthenticated(method: Behavior["authentication"], request: IncomingMessage, form: URLSearchParams): boolean {
  if (method === "client_secret_post")
    return form.get("client_id") === ID && form.get("client_secret") === CLIENT_SECRET;
  const [id, secret] = Buffer.from((request.headers.authorization ?? "").replace(/^Basic /, ""), "base64")
    .toString()
    .split(":");
  return formDecoded(id) === ID && formDecoded(secret) === CLIENT_SECRET;
}

/** An OpenID provider on loopback that does what `behavior` says, also what no provider should do. */
export async function customProvider() {
  const behavior: Behavior = {
    path: "",
    alg: "RS256",
    claims: {},
    userinfo: null,
    metadata: {},
    authentication: "client_secret_post",
    callback: {},
  };
  const codes = new Map<string, Request>();
  const requests: string[] = [];
  let keys: { kid: string; alg: string; privateKey: Parameters<SignJWT["sign"]>[0]; jwk: JWK | null };
  const newKey = async () => {
    const { alg } = behavior;
    const kid = randomUUID();
    if (alg.startsWith("HS")) return { kid, alg, privateKey: Buffer.from(CLIENT_SECRET), jwk: null };
    const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
    return { kid, alg, privateKey, jwk: { ...(await exportJWK(publicKey)), kid, alg, use: "sig" } };
  };
  const sign = async (claims: Claims, key = keys) =>
    new SignJWT(claims).setProtectedHeader({ alg: key.alg, kid: key.kid }).sign(key.privateKey);
  let origin = "";
  const issuer = () => `${origin}${behavior.path}`;
  const at = (name: string) => `${issuer().replace(/\/$/, "")}/${name}`;
  const json = (response: ServerResponse, body: unknown, status = 200) =>
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));

  const authorize = ({ searchParams }: URL, response: ServerResponse) => {
    const code = randomUUID();
    const redirectUri = searchParams.get("redirect_uri") as string;
    codes.set(code, {
      nonce: searchParams.get("nonce") as string,
      challenge: searchParams.get("code_challenge") as string,
      redirectUri,
    });
    const target = new URL(redirectUri);
    const fields = { code, state: searchParams.get("state") as string, ...behavior.callback };
    for (const [name, value] of Object.entries(fields)) target.searchParams.set(name, value);
    response.writeHead(302, { location: target.href }).end();
  };
  const token = async (request: IncomingMessage, response: ServerResponse) => {
    const form = await bodyOf(request);
    if (!isAuthenticated(behavior.authentication, request, form))
      return json(response, { error: "invalid_client" }, 401);
    const known = codes.get(form.get("code") ?? "");
    codes.delete(form.get("code") ?? "");
    const challenge = createHash("sha256")
      .update(form.get("code_verifier") ?? "")
      .digest("base64url");
    if (known?.challenge !== challenge || known.redirectUri !== form.get("redirect_uri"))
      return json(response, { error: "invalid_grant" }, 400);
    const now = Math.floor(Date.now() / 1000);
    const standard = { iss: issuer(), aud: ID, iat: now, exp: now + 300, nonce: known.nonce };
    const id_token = await sign({ ...standard, ...behavior.claims });
    return json(response, { access_token: "access", token_type: "Bearer", expires_in: 300, id_token });
  };
  const server = createServer(async (request, response) => {
    const url = new URL(request.url as string, origin);
    const name = url.pathname.slice(url.pathname.lastIndexOf("/") + 1);
    requests.push(name);
    if (await behavior.instead?.(name, response)) return;
    if (name === "openid-configuration")
      json(response, {
        issuer: issuer(),
        authorization_endpoint: at("authorize"),
        token_endpoint: at("token"),
        jwks_uri: at("jwks"),
        id_token_signing_alg_values_supported: [behavior.alg],
        response_types_supported: ["code"],
        subject_types_supported: ["public"],
        ...(behavior.userinfo && { userinfo_endpoint: at("userinfo") }),
        ...behavior.metadata,
      });
    else if (name === "jwks") json(response, { keys: keys.jwk ? [keys.jwk] : [] });
    else if (name === "authorize") authorize(url, response);
    else if (name === "token") await token(request, response);
    else if (name === "userinfo") json(response, { sub: behavior.claims.sub, ...behavior.userinfo });
    else response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  keys = await newKey();
  return {
    behavior,
    origin,
    requests,
    /** Signs with another key from now on; `isPublished`: which is in the key set. */
    async rotate({ isPublished = true } = {}) {
      const { jwk } = keys;
      keys = await newKey();
      if (!isPublished) keys.jwk = jwk && { ...jwk, kid: keys.kid };
    },
    close: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
