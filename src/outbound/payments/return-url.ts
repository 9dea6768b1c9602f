import type { NewOrder } from "./provider.ts";

/** Of the page for payers, where the operator has none. Below the base address. */
export const RETURN_PATH = "/payment";

/** Where a payer comes back to; nothing is believed of what it says, since anybody can go there. */
export function withOutcome({ returnUrl, orderId }: NewOrder, outcome: "paid" | "canceled"): string {
  const url = new URL(returnUrl);
  url.searchParams.set("order_id", orderId);
  url.searchParams.set("outcome", outcome);
  return url.href;
}
