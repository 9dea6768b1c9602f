import type { ClientAuth, Configuration, CustomFetch } from "openid-client";
import { type App, forApp } from "#app.ts";
import { withoutTrailing } from "#lib/base";
import type { Config } from "#platform/config/load.ts";
import { fetchBounded } from "./fetch-bounded.ts";

/** The metadata of a provider is read again after this time, because its endpoints may change. */
const KEPT_MS = 3_600_000;
const TIMEOUT_SECONDS = 10;

export const callbackPath = "/api/v1/session/oidc/callback";
export const isOidcConfigured = ({ oidc_issuer }: Config): boolean => oidc_issuer !== undefined;

/** The provider's name on the sign-in page; null without one. */
export const providerName = ({ oidc_issuer, oidc_name }: Config): string | null =>
  oidc_issuer === undefined ? null : (oidc_name ?? new URL(oidc_issuer).hostname);

/** Loaded with the first sign-in. */
export const library = () => import("openid-client");

/** The provider by its metadata; `alternative` has the other method to authenticate with the client's secret, where there is one. */
export type Provider = { configuration: Configuration; alternative: Configuration | null };

const discovered = forApp(() => ({ at: 0, provider: null as Promise<Provider> | null }));

/** The provider of the settings, by its metadata (OpenID Connect Discovery 1.0). Throws where it cannot be reached. */
export function provider(app: App): Promise<Provider> {
  const known = discovered(app);
  const now = app.clock.now();
  if (known.provider === null || Math.abs(now - known.at) > KEPT_MS) {
    known.at = now;
    known.provider = discover(app);
    known.provider.catch(() => {
      known.provider = null;
    });
  }
  return known.provider;
}

async function discover({ config }: App): Promise<Provider> {
  const { ClientSecretBasic, ClientSecretPost, Configuration, None, ...client } = await library();
  const { oidc_client_id: id = "", oidc_client_secret: secret } = config;
  const issuer = new URL(config.oidc_issuer as string);
  // The settings allow these only for loopback addresses.
  const execute = issuer.protocol === "http:" ? [client.allowInsecureRequests] : [];
  const options = { timeout: TIMEOUT_SECONDS, execute, [client.customFetch]: fetchBounded as CustomFetch };
  const found = await withEitherSlash(issuer, (url) => client.discovery(url, id, secret, None(), options));
  const metadata = found.serverMetadata();
  const by = (method: ClientAuth): Configuration => {
    const configuration = new Configuration(metadata, id, secret, method);
    configuration.timeout = TIMEOUT_SECONDS;
    configuration[client.customFetch] = fetchBounded as CustomFetch;
    for (const apply of execute) apply(configuration);
    return configuration;
  };
  if (secret === undefined) return { configuration: by(None()), alternative: null };
  const methods = [by(ClientSecretPost(secret)), by(ClientSecretBasic(secret))] as const;
  // Basic is the default (OpenID Connect Discovery 1.0, 3).
  const isPosted = metadata.token_endpoint_auth_methods_supported?.includes("client_secret_post") ?? false;
  const [configuration, alternative] = isPosted ? methods : ([methods[1], methods[0]] as const);
  return { configuration, alternative };
}

/** Whether an issuer ends with a slash is easily confused, and no two providers differ in that alone. */
async function withEitherSlash(issuer: URL, find: (url: URL) => Promise<Configuration>): Promise<Configuration> {
  try {
    return await find(issuer);
  } catch (error) {
    const { code } = error as { code?: unknown };
    if (code !== "OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED" || issuer.pathname === "/") throw error;
    const other = new URL(issuer);
    const bare = withoutTrailing(issuer.pathname, "/");
    other.pathname = bare === issuer.pathname ? `${bare}/` : bare;
    return find(other);
  }
}
