import type { Configuration } from "openid-client";
import { type App, forApp } from "#app.ts";
import type { Config } from "#platform/config/load.ts";

/** The metadata of a provider is read again after this time, because its keys and endpoints may change. */
const KEPT_MS = 3_600_000;
const TIMEOUT_SECONDS = 10;

export const callbackPath = "/api/v1/session/oidc/callback";
export const isOidcConfigured = ({ oidc_issuer }: Config): boolean => oidc_issuer !== undefined;

/** The provider's name on the sign-in page; null without one. */
export const providerName = ({ oidc_issuer, oidc_name }: Config): string | null =>
  oidc_issuer === undefined ? null : (oidc_name ?? new URL(oidc_issuer).hostname);

/** Loaded with the first sign-in. */
export const library = () => import("openid-client");

const discovered = forApp(() => ({ at: 0, configuration: null as Promise<Configuration> | null }));

/** The provider of the settings, by its metadata (OpenID Connect Discovery 1.0). Throws where it cannot be reached. */
export function provider(app: App): Promise<Configuration> {
  const known = discovered(app);
  const now = app.clock.now();
  if (known.configuration === null || Math.abs(now - known.at) > KEPT_MS) {
    known.at = now;
    known.configuration = discover(app);
    known.configuration.catch(() => {
      known.configuration = null;
    });
  }
  return known.configuration;
}

async function discover({ config }: App): Promise<Configuration> {
  const { allowInsecureRequests, discovery, None } = await library();
  const issuer = new URL(config.oidc_issuer as string);
  const secret = config.oidc_client_secret;
  return discovery(issuer, config.oidc_client_id as string, secret, secret === undefined ? None() : undefined, {
    timeout: TIMEOUT_SECONDS,
    // The settings allow these only for loopback addresses.
    ...(issuer.protocol === "http:" && { execute: [allowInsecureRequests] }),
  });
}
