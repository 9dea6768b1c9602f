import type { App } from "#app.ts";
import type { PaymentKind } from "#model/enums.ts";
import type { Config } from "#platform/config/load.ts";

/** An order as sent to a provider: identical on each call, so that a repeat is recognized. */
export type NewOrder = {
  orderId: string;
  /** How often the provider has refused it: each next attempt is a new request to it. */
  refusals: number;
  amountMinor: number;
  /** ISO 4217. */
  currency: string;
  description: string;
  returnUrl: string;
  expiresAt: number;
};
export type Created = { providerOrderId: string; checkoutUrl: string };

export type Amount = { amountMinor: number; currency: string };
/** A verified notification of the provider. */
export type Notice = {
  eventId: string;
  type: string;
  /** Our order id, as we sent it to the provider; null when the notification is about something else. */
  orderId: string | null;
  /** The provider's id of the order, when the notification contains it. */
  providerOrderId: string | null;
  /** `approved`: the payer agreed, and the payment must still be captured. */
  outcome: "paid" | "approved" | "other";
  /** The amount paid; `order`: the provider reports none, and always takes the price of the order. */
  amount: Amount | "order" | null;
};

export type Notification = { headers: Headers; body: Uint8Array; now: number };

/** A provider as its file exports it; `configured.ts` lists all. */
export type PaymentService = {
  /** Checks the settings. Throws one UserError that says what is missing or wrong. */
  check(config: Config): void;
  /** Throws the UserError of `check`. */
  open(app: Pick<App, "config" | "clock" | "baseUrl">): PaymentProvider;
};

export interface PaymentProvider {
  readonly kind: PaymentKind;
  /**
   * Idempotent: the provider creates one order for all calls with the same `orderId` that it did not refuse. Throws
   * PaymentFailed.
   */
  create(order: NewOrder): Promise<Created>;
  /** Throws NotGenuine when the provider did not send it, not to us, or too long ago; PaymentFailed. */
  verify(notification: Notification): Promise<Notice>;
  /** Captures the payment of an approved order: null while it is pending. Idempotent. Throws PaymentFailed. */
  capture(orderId: string, providerOrderId: string): Promise<Amount | null>;
}

/** The provider failed or refused. The message is for the log and contains no key. */
export class PaymentFailed extends Error {
  /** The provider refused the order: a repeat under the same key would get the same response. */
  readonly isRefusal: boolean;
  constructor(message: string, isRefusal = false) {
    super(message);
    this.name = "PaymentFailed";
    this.isRefusal = isRefusal;
  }
}

/** The key by which a provider recognizes a repeat of an order. */
export const requestIdOf = ({ orderId, refusals }: NewOrder) =>
  refusals === 0 ? `vodbox-${orderId}` : `vodbox-${orderId}-${refusals}`;

export class InvalidSignature extends Error {
  constructor(message: string) {
    super(message);
    this.name = "NotGenuine";
  }
}
