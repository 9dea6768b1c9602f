import * as v from "valibot";
import { abortAfter, type Clock } from "#lib/base";
import type { Config } from "#platform/config/load.ts";
import { requiredSettings } from "#platform/config/required-settings.ts";
import { serviceUrl } from "../service-url.ts";
import { paypalSignatures } from "./paypal-signature.ts";
import {
  type Amount,
  InvalidSignature,
  type NewOrder,
  type Notice,
  PaymentFailed,
  type PaymentProvider,
  type PaymentService,
  requestIdOf,
} from "./provider.ts";
import { withOutcome } from "./return-url.ts";

const TIMEOUT_MS = 15_000;
const MAX_BYTES = 1 << 20;

const Token = v.object({ access_token: v.string(), expires_in: v.number() });
const Money = v.object({ value: v.string(), currency_code: v.string() });
const Link = v.object({ rel: v.string(), href: v.string() });
const Order = v.object({ id: v.string(), links: v.array(Link) });
const Captured = v.object({
  status: v.string(),
  purchase_units: v.array(
    v.object({
      payments: v.object({ captures: v.array(v.object({ status: v.string(), amount: Money })) }),
    }),
  ),
});
const Unit = v.object({ custom_id: v.optional(v.string()), amount: v.optional(Money) });
const Event = v.object({
  id: v.string(),
  event_type: v.string(),
  resource: v.object({
    id: v.optional(v.string()),
    custom_id: v.optional(v.string()),
    amount: v.optional(v.unknown()),
    purchase_units: v.optional(v.array(Unit)),
    supplementary_data: v.optional(
      v.object({ related_ids: v.optional(v.object({ order_id: v.optional(v.string()) })) }),
    ),
  }),
});

type Settings = { clientId: string; clientSecret: string; webhookId: string; url: URL };

export const paypal: PaymentService = {
  check: (config) => void settingsOf(config),
  open: ({ config, clock }) => paypalPayments(settingsOf(config), clock),
};

function settingsOf(config: Config): Settings {
  const names = ["paypal_client_id", "paypal_client_secret", "paypal_webhook_id"] as const;
  const [clientId, clientSecret, webhookId] = requiredSettings(config, "VODBOX_PAYMENTS=paypal also", names);
  return { clientId, clientSecret, webhookId, url: new URL(config.paypal_url) };
}

/**
 * Orders v2 without PayPal's package, for three calls: the package brings an HTTP client and four more packages, and
 * supports no other base URLs than its two.
 */
function paypalPayments({ clientId, clientSecret, webhookId, url }: Settings, clock: Clock): PaymentProvider {
  const signatures = paypalSignatures({ url, webhookId });
  let token: { value: string; until: number } | null = null;

  async function accessToken(): Promise<string> {
    if (token && clock.now() < token.until) return token.value;
    const authorization = `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString("base64")}`;
    const headers = { authorization, "content-type": "application/x-www-form-urlencoded" };
    const answer = await send(url, "/v1/oauth2/token", headers, "grant_type=client_credentials");
    const { access_token: value, expires_in: seconds } = shaped(Token, answer);
    token = { value, until: clock.now() + Math.max(0, seconds - 60) * 1000 };
    return value;
  }

  async function call(path: string, requestId: string, body: unknown): Promise<unknown> {
    const headers = {
      authorization: `Bearer ${await accessToken()}`,
      "content-type": "application/json",
      "paypal-request-id": requestId,
      prefer: "return=representation",
    };
    try {
      return await send(url, path, headers, JSON.stringify(body));
    } catch (error) {
      // A revoked token is not reused.
      token = null;
      throw error;
    }
  }

  return {
    kind: "paypal",
    async create(order) {
      const created = shaped(Order, await call("/v2/checkout/orders", requestIdOf(order), orderOf(order)));
      const link = created.links.find(({ rel }) => rel === "payer-action" || rel === "approve");
      if (!link) throw new PaymentFailed("PayPal returned an order without a payment URL.");
      return { providerOrderId: created.id, checkoutUrl: link.href };
    },
    async verify(notification) {
      await signatures.verify(notification);
      return noticeOf(notification.body);
    },
    async capture(orderId, providerOrderId) {
      const path = `/v2/checkout/orders/${encodeURIComponent(providerOrderId)}/capture`;
      const { status, purchase_units: units } = shaped(Captured, await call(path, `${orderId}-capture`, {}));
      const capture = units[0]?.payments.captures[0];
      // A capture that is pending is reported by PAYMENT.CAPTURE.COMPLETED when it completes.
      if (status !== "COMPLETED" || capture?.status !== "COMPLETED") return null;
      return amountOf(capture.amount);
    },
  };
}

const orderOf = (order: NewOrder) => ({
  intent: "CAPTURE",
  purchase_units: [
    {
      custom_id: order.orderId,
      invoice_id: order.orderId,
      description: order.description,
      amount: { currency_code: order.currency, value: decimalOf(order) },
    },
  ],
  payment_source: {
    paypal: {
      experience_context: {
        user_action: "PAY_NOW",
        shipping_preference: "NO_SHIPPING",
        return_url: withOutcome(order, "paid"),
        cancel_url: withOutcome(order, "canceled"),
      },
    },
  },
});

const fractionDigitsOf = (currency: string) =>
  new Intl.NumberFormat("en", { style: "currency", currency }).resolvedOptions().maximumFractionDigits ?? 2;

function decimalOf({ amountMinor, currency }: Amount): string {
  const fractionDigits = fractionDigitsOf(currency);
  const digits = String(amountMinor).padStart(fractionDigits + 1, "0");
  return fractionDigits === 0 ? digits : `${digits.slice(0, -fractionDigits)}.${digits.slice(-fractionDigits)}`;
}

function amountOf({ value, currency_code: currency }: v.InferOutput<typeof Money>): Amount | null {
  const match = /^(\d{1,12})(?:\.(\d+))?$/.exec(value);
  if (!match || !/^[A-Z]{3}$/.test(currency)) return null;
  const fractionDigits = fractionDigitsOf(currency);
  const fraction = (match[2] ?? "").padEnd(fractionDigits, "0");
  if (/[^0]/.test(fraction.slice(fractionDigits))) return null;
  return { amountMinor: Number(`${match[1]}${fraction.slice(0, fractionDigits)}`), currency };
}

function noticeOf(body: Uint8Array): Notice {
  const event = v.safeParse(Event, parsed(body));
  if (!event.success) throw new InvalidSignature("The notification has an unexpected structure.");
  const { id: eventId, event_type: type, resource } = event.output;
  if (type === "CHECKOUT.ORDER.APPROVED") {
    const orderId = resource.purchase_units?.[0]?.custom_id ?? null;
    return { eventId, type, orderId, providerOrderId: resource.id ?? null, outcome: "approved", amount: null };
  }
  const money = v.safeParse(Money, resource.amount);
  return {
    eventId,
    type,
    orderId: resource.custom_id ?? null,
    providerOrderId: resource.supplementary_data?.related_ids?.order_id ?? null,
    outcome: type === "PAYMENT.CAPTURE.COMPLETED" ? "paid" : "other",
    amount: money.success ? amountOf(money.output) : null,
  };
}

function parsed(body: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    return null;
  }
}

function shaped<T>(schema: v.GenericSchema<unknown, T>, value: unknown): T {
  const result = v.safeParse(schema, value);
  if (result.success) return result.output;
  throw new PaymentFailed("PayPal sent an unexpected response.");
}

async function send(base: URL, path: string, headers: Record<string, string>, body: string): Promise<unknown> {
  try {
    const signal = abortAfter(TIMEOUT_MS);
    const answer = await fetch(serviceUrl(base.href, path), {
      method: "POST",
      headers: { ...headers, accept: "application/json" },
      body,
      redirect: "manual",
      signal,
    });
    if (!answer.ok) {
      await answer.body?.cancel();
      throw new PaymentFailed(
        `PayPal responded with status ${answer.status} to ${path.split("/").slice(0, 4).join("/")}.`,
        true,
      );
    }
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    for await (const chunk of answer.body ?? []) {
      bytes += chunk.length;
      if (bytes > MAX_BYTES) throw new PaymentFailed("The response of PayPal is too large.");
      chunks.push(chunk);
    }
    return parsed(Buffer.concat(chunks));
  } catch (error) {
    if (error instanceof PaymentFailed) throw error;
    const cause = (error as Error).cause as { code?: string } | undefined;
    throw new PaymentFailed(`PayPal could not be reached (${cause?.code ?? (error as Error).name}).`);
  }
}
