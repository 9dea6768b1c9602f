import { type App, forApp } from "../../app.ts";
import { paymentSettings } from "../../config/payments.ts";
import type { PaymentProvider } from "./provider.ts";

const configured = forApp((app) => ({ provider: load(app) }));

async function load(app: App): Promise<PaymentProvider | null> {
  const settings = paymentSettings(app.config);
  if (settings === null) return null;
  if (settings.kind === "stripe") return (await import("./stripe.ts")).stripePayments(settings);
  if (settings.kind === "paypal") return (await import("./paypal.ts")).paypalPayments(settings, app.clock);
  return (await import("./simulated.ts")).simulatedPayments(app.baseUrl);
}

/** The provider of the settings; null while payments are off. */
export const paymentsOf = (app: App): Promise<PaymentProvider | null> => configured(app).provider;
