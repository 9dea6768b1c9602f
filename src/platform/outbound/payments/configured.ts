import { type App, forApp } from "#app.ts";
import type { PaymentKind } from "#model/enums.ts";
import type { Config } from "#platform/config/load.ts";
import type { PaymentProvider, PaymentService } from "./provider.ts";

type Entry = {
  /** The request header that contains the signature of its notifications. */
  signedBy: string;
  /** Imports its file, which a server without payments never needs. */
  load(): Promise<PaymentService>;
};

const PROVIDERS: Record<PaymentKind, Entry> = {
  stripe: { signedBy: "stripe-signature", load: async () => (await import("./stripe.ts")).stripe },
  paypal: { signedBy: "paypal-transmission-sig", load: async () => (await import("./paypal.ts")).paypal },
  simulated: { signedBy: "x-svc-simulated-event", load: async () => (await import("./simulated.ts")).simulated },
};

/** Checks the settings of the payment provider. Throws one UserError that says what is missing or wrong. */
export async function checkPayments(config: Config): Promise<void> {
  if (config.payments !== "off") (await PROVIDERS[config.payments].load()).check(config);
}

const configured = forApp((app) => ({ provider: open(app) }));

async function open(app: App): Promise<PaymentProvider | null> {
  const { payments } = app.config;
  return payments === "off" ? null : (await PROVIDERS[payments].load()).open(app);
}

/** The provider of the settings; null while payments are off. */
export const paymentsOf = (app: App): Promise<PaymentProvider | null> => configured(app).provider;

/** The providers whose signature header the request has, configured or not. */
export const signersOf = (headers: Headers): string[] =>
  Object.entries(PROVIDERS).flatMap(([kind, { signedBy }]) => (headers.has(signedBy) ? [kind] : []));
