import { UserError } from "../lib/errors.ts";
import type { Config } from "./load.ts";
import { envName, type SettingName } from "./settings.ts";

export type PaymentSettings =
  | { kind: "stripe"; key: string; webhookSecret: string; url: URL; isLive: boolean }
  | { kind: "paypal"; clientId: string; clientSecret: string; webhookId: string; url: URL }
  | { kind: "simulated" };

/** What the payment provider needs; null while payments are off. Throws one UserError that names all that is missing. */
export function paymentSettings(config: Config): PaymentSettings | null {
  const kind = config.payments;
  if (kind === "off") return null;
  if (kind === "simulated") {
    if (config.env === "development") return { kind };
    throw new UserError(
      "VODBOX_PAYMENTS=simulated gives plans away: it is for VODBOX_ENV=development alone. Choose stripe, paypal or off.",
      2,
    );
  }
  if (kind === "stripe") {
    const [key, webhookSecret] = needed(config, kind, ["stripe_key", "stripe_webhook_secret"]);
    const mode = /^[sr]k_(live|test)_/.exec(key)?.[1];
    if (mode === undefined)
      throw new UserError("VODBOX_STRIPE_KEY must be a secret or restricted key: sk_live_…, sk_test_… or rk_….", 2);
    return { kind, key, webhookSecret, url: new URL(config.stripe_url), isLive: mode === "live" };
  }
  const names = ["paypal_client_id", "paypal_client_secret", "paypal_webhook_id"] as const;
  const [clientId, clientSecret, webhookId] = needed(config, kind, names);
  return { kind, clientId, clientSecret, webhookId, url: new URL(config.paypal_url) };
}

function needed<const Names extends readonly SettingName[]>(
  config: Config,
  kind: string,
  names: Names,
): { [Index in keyof Names]: string } {
  const missing = names.filter((name) => config[name] === undefined);
  if (missing.length > 0)
    throw new UserError(`VODBOX_PAYMENTS=${kind} also needs ${missing.map(envName).join(", ")}.`, 2);
  return names.map((name) => config[name]) as { [Index in keyof Names]: string };
}
