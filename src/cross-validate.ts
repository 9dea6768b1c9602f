import { UserError } from "#lib/base";
import type { Config } from "#platform/config/load.ts";
import { checkReplica } from "#platform/config/replica-store.ts";
import { storeDriver } from "#platform/config/stores.ts";
import { checkMail } from "#platform/outbound/mail/smtp.ts";
import { checkPayments } from "#platform/outbound/payments/configured.ts";

const checkStorage = (config: Config) => config.storage === "none" || storeDriver(config.storage).check(config);

function checkLive({ rtmps_port, tls_cert }: Config): void {
  if (rtmps_port !== undefined && tls_cert === undefined)
    throw new UserError("VODBOX_RTMPS_PORT needs VODBOX_TLS_CERT and VODBOX_TLS_KEY.", 2);
}

function checkCountry({ country_header, trusted_proxies }: Config): void {
  if (country_header !== undefined && trusted_proxies.length === 0)
    throw new UserError("VODBOX_COUNTRY_HEADER needs VODBOX_TRUSTED_PROXIES: only those may name a country.", 2);
}

function checkOidc({ oidc_issuer, oidc_client_id }: Config): void {
  if ((oidc_issuer === undefined) !== (oidc_client_id === undefined))
    throw new UserError("OpenID Connect needs both VODBOX_OIDC_ISSUER and VODBOX_OIDC_CLIENT_ID.", 2);
}

/**
 * Checks that settings fit together, before anything is created. `more` are additional checks of the caller. Throws one
 * UserError with all faults.
 */
export async function crossValidate(config: Config, ...more: ((config: Config) => unknown)[]): Promise<void> {
  const faults: UserError[] = [];
  for (const check of [
    checkStorage,
    checkPayments,
    checkReplica,
    checkLive,
    checkMail,
    checkOidc,
    checkCountry,
    ...more,
  ]) {
    try {
      await check(config);
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      faults.push(error);
    }
  }
  if (faults.length === 0) return;
  const isUsage = faults.some(({ exitCode }) => exitCode === 2);
  throw new UserError(faults.map(({ message }) => message).join(" "), isUsage ? 2 : 1);
}
