import type Stripe from "stripe";
import * as v from "valibot";
import { UserError } from "#lib/base";
import type { Config } from "#platform/config/load.ts";
import { requiredSettings } from "#platform/config/required-settings.ts";
import {
  type Created,
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
const RETRIES = 2;
/** Stripe signs each attempt again. */
const TOLERANCE_SECONDS = 300;

type Settings = { key: string; webhookSecret: string; url: URL; isLive: boolean };

export const stripe: PaymentService = {
  check: (config) => void settingsOf(config),
  open: ({ config }) => stripePayments(settingsOf(config)),
};

function settingsOf(config: Config): Settings {
  const names = ["stripe_key", "stripe_webhook_secret"] as const;
  const [key, webhookSecret] = requiredSettings(config, "VODBOX_PAYMENTS=stripe also", names);
  const mode = /^[sr]k_(live|test)_/.exec(key)?.[1];
  if (mode === undefined)
    throw new UserError("VODBOX_STRIPE_KEY must be a secret or restricted key: sk_live_…, sk_test_… or rk_….", 2);
  return { key, webhookSecret, url: new URL(config.stripe_url), isLive: mode === "live" };
}

/**
 * Checkout Sessions of mode `payment`: an order is paid once and sets a plan once, as with PayPal; a subscription would
 * renew at Stripe without renewing anything here.
 */
function stripePayments({ key, webhookSecret, url, isLive }: Settings): PaymentProvider {
  // Takes a quarter of a second to load from the sources; loaded on first use.
  let loading: Promise<Stripe> | undefined;
  const client = () => {
    loading ??= import("stripe").then(
      (library) =>
        new library.default(key, {
          protocol: url.protocol === "http:" ? "http" : "https",
          host: url.hostname,
          ...(url.port !== "" && { port: url.port }),
          timeout: TIMEOUT_MS,
          maxNetworkRetries: RETRIES,
          telemetry: false,
        }),
    );
    return loading;
  };
  return {
    kind: "stripe",
    async create(order) {
      const stripe = await client();
      try {
        const session = await stripe.checkout.sessions.create(sessionOf(order), {
          idempotencyKey: requestIdOf(order),
        });
        return created(session);
      } catch (error) {
        if (error instanceof PaymentFailed) throw error;
        const { type, code, statusCode } = error as { type?: string; code?: string; statusCode?: number };
        const details = [type, code, statusCode].filter((each) => each !== undefined).join(" ");
        throw new PaymentFailed(
          `Stripe could not create a session (${details || (error as Error).name}).`,
          statusCode !== undefined,
        );
      }
    },
    async verify({ headers, body, now }) {
      const stripe = await client();
      let event: Stripe.Event;
      try {
        const signature = headers.get("stripe-signature") ?? "";
        event = await stripe.webhooks.constructEventAsync(
          Buffer.from(body),
          signature,
          webhookSecret,
          TOLERANCE_SECONDS,
          undefined,
          now,
        );
      } catch {
        throw new InvalidSignature("The signature is wrong or too old.");
      }
      if (event?.livemode !== isLive) throw new InvalidSignature("The event belongs to the other mode (live or test).");
      return noticeOf(event);
    },
    async capture() {
      throw new PaymentFailed("Stripe captures payments itself.");
    },
  };
}

const sessionOf = (order: NewOrder): Stripe.Checkout.SessionCreateParams => ({
  mode: "payment",
  client_reference_id: order.orderId,
  metadata: { order_id: order.orderId },
  payment_intent_data: { metadata: { order_id: order.orderId } },
  line_items: [
    {
      quantity: 1,
      price_data: {
        currency: order.currency.toLowerCase(),
        unit_amount: order.amountMinor,
        product_data: { name: order.description },
      },
    },
  ],
  success_url: withOutcome(order, "paid"),
  cancel_url: withOutcome(order, "canceled"),
  expires_at: Math.floor(order.expiresAt / 1000),
});

function created({ id, url }: Stripe.Checkout.Session): Created {
  if (typeof id !== "string" || typeof url !== "string") throw new PaymentFailed("Stripe returned no session.");
  return { providerOrderId: id, checkoutUrl: url };
}

const PAID: ReadonlySet<string> = new Set(["checkout.session.completed", "checkout.session.async_payment_succeeded"]);

/** Correctly signed but possibly of any shape: an event without a session that we created belongs to no order. */
const SignedSession = v.looseObject({
  id: v.string(),
  client_reference_id: v.nullish(v.string(), null),
  payment_status: v.nullish(v.string(), null),
  amount_total: v.nullish(v.number(), null),
  currency: v.nullish(v.string(), null),
});
const SignedEvent = v.object({ id: v.string(), type: v.string(), data: v.object({ object: SignedSession }) });

function noticeOf(event: Stripe.Event): Notice {
  const other = { orderId: null, providerOrderId: null, outcome: "other", amount: null } as const;
  const read = v.safeParse(SignedEvent, event);
  if (!read.success || !read.output.type.startsWith("checkout.session."))
    return { eventId: String(event.id), type: String(event.type), ...other };
  const { id: eventId, type } = read.output;
  const session = read.output.data.object;
  // A bank transfer is completed by the payer long before it is paid.
  const isPaid = PAID.has(type) && session.payment_status === "paid";
  return {
    eventId,
    type,
    orderId: session.client_reference_id,
    providerOrderId: session.id,
    outcome: isPaid ? "paid" : "other",
    amount:
      session.amount_total === null || session.currency === null
        ? null
        : { amountMinor: session.amount_total, currency: session.currency.toUpperCase() },
  };
}
