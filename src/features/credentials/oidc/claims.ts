import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from "jose";
import type { Configuration, TokenEndpointResponse, TokenEndpointResponseHelpers } from "openid-client";
import * as v from "valibot";
import type { App } from "#app.ts";
import { HttpError } from "#lib/base";
import { fetchBounded } from "./fetch-bounded.ts";
import { callbackPath, library, type Provider, provider } from "./provider.ts";

/** What the provider says about a person. */
export type Claims = Record<string, unknown> & { iss: string; sub: string };

/** What a sign-in that has begun expects of its callback. */
export type Expected = { state: string; nonce: string; verifier: string };

const SKEW_SECONDS = 30;
/** OpenID Connect Core 1.0, 2. */
const MAX_SUBJECT = 255;
const Subject = v.pipe(v.string(), v.minLength(1), v.maxLength(MAX_SUBJECT));

type Tokens = TokenEndpointResponse & TokenEndpointResponseHelpers;

/**
 * What the provider says about the person whose sign-in led to the callback with `search`. Throws for a code, signature, issuer or nonce
 * that is not right, and where the provider cannot be reached.
 */
export async function claimsOf(app: App, search: string, expected: Expected): Promise<Claims> {
  const client = await library();
  const known = await provider(app);
  const tokens = await tokensOf(known, new URL(`${app.baseUrl()}${callbackPath}${search}`), expected);
  const claims = tokens.claims() as Claims | undefined;
  if (!claims || !v.is(Subject, claims.sub))
    throw new HttpError(400, "oidc_failed", "The provider sent no ID token with a subject.");
  await verifySignature(app, known, tokens.id_token as string);
  const { configuration } = known;
  // Providers may give claims of scopes only there (OpenID Connect Core 1.0, 5.4).
  const more: Record<string, unknown> = configuration.serverMetadata().userinfo_endpoint
    ? await client.fetchUserInfo(configuration, tokens.access_token, claims.sub)
    : {};
  // An address is verified by the source that has it.
  const { email, email_verified } = claims.email === undefined ? more : claims;
  return { ...more, ...claims, email, email_verified };
}

/** Some providers accept only one method of authentication, and do not say which one. */
async function tokensOf(known: Provider, callback: URL, { state, nonce, verifier }: Expected): Promise<Tokens> {
  const client = await library();
  const grant = (configuration: Configuration): Promise<Tokens> =>
    client.authorizationCodeGrant(configuration, callback, {
      pkceCodeVerifier: verifier,
      expectedState: state,
      expectedNonce: nonce,
      idTokenExpected: true,
    });
  try {
    return await grant(known.configuration);
  } catch (error) {
    const isRefused =
      error instanceof client.WWWAuthenticateChallengeError ||
      (error instanceof client.ResponseBodyError && error.error === "invalid_client");
    if (!isRefused || known.alternative === null) throw error;
    return grant(known.alternative);
  }
}

/**
 * Verifies an ID token by the keys that the provider has now: they are read with each sign-in, because they may have changed. With a
 * symmetric algorithm the key is the client's secret (OpenID Connect Core 1.0, 10.1).
 */
async function verifySignature(app: App, { configuration }: Provider, token: string): Promise<void> {
  const { oidc_client_secret: secret = "" } = app.config;
  const options = { clockTolerance: SKEW_SECONDS };
  const isSymmetric = /^HS/.test(algorithmOf(token));
  if (isSymmetric) {
    if (secret === "") throw new HttpError(400, "oidc_failed", "The ID token is signed with a secret that is not set.");
    await jwtVerify(token, new TextEncoder().encode(secret), options);
    return;
  }
  const { jwks_uri } = configuration.serverMetadata();
  if (jwks_uri === undefined) throw new HttpError(400, "oidc_failed", "The provider publishes no keys.");
  const response = await fetchBounded(jwks_uri, { headers: { accept: "application/json" } });
  if (!response.ok) throw new HttpError(502, "oidc_unavailable", "The provider does not return its keys.");
  await jwtVerify(token, createLocalJWKSet((await response.json()) as JSONWebKeySet), options);
}

const algorithmOf = (token: string): string =>
  String(JSON.parse(Buffer.from(token.split(".")[0] as string, "base64url").toString("utf8")).alg);
