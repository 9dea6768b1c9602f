/** An order as a provider is told of it: the same each time it is told, so that a repeat is known for one. */
export type NewOrder = {
  orderId: string;
  /** Times that the provider has refused it: each next try is a new request to it. */
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
/** A notification that is the provider's own. */
export type Notice = {
  eventId: string;
  type: string;
  /** Ours, as we gave it to the provider; null when it is about something else. */
  orderId: string | null;
  /** The provider's name of the order, where the notification says it. */
  providerOrderId: string | null;
  /** `approved`: the payer agreed, and the money is still to be taken. */
  outcome: "paid" | "approved" | "other";
  amount: Amount | null;
};

export type Notification = { headers: Headers; body: Uint8Array; now: number };

export interface PaymentProvider {
  readonly kind: "stripe" | "paypal" | "simulated";
  /** Repeatable: the provider makes one order of all calls for one `orderId` that it did not refuse. Throws PaymentFailed. */
  create(order: NewOrder): Promise<Created>;
  /** Throws NotGenuine for what the provider did not send, or not to us, or long ago; PaymentFailed. */
  verify(notification: Notification): Promise<Notice>;
  /** Takes the money of an approved order: null while it is on its way. Repeatable. Throws PaymentFailed. */
  capture(orderId: string, providerOrderId: string): Promise<Amount | null>;
}

/** The provider could not, or would not. The message is for the log and holds no key. */
export class PaymentFailed extends Error {
  /** The provider answered, and made nothing: it would answer the same to a repeat under the same key. */
  readonly isRefusal: boolean;
  constructor(message: string, isRefusal = false) {
    super(message);
    this.name = "PaymentFailed";
    this.isRefusal = isRefusal;
  }
}

/** What a provider knows a repeat of an order by. */
export const requestIdOf = ({ orderId, refusals }: NewOrder) =>
  refusals === 0 ? `vodbox-${orderId}` : `vodbox-${orderId}-${refusals}`;

export class InvalidSignature extends Error {
  constructor(message: string) {
    super(message);
    this.name = "NotGenuine";
  }
}
