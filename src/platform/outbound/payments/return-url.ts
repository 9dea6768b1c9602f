import type { NewOrder } from "./provider.ts";

/** Path of the page for payers when the operator has none. Relative to the base URL. */
export const RETURN_PATH = "/payment";

/** Where a payer returns to; its parameters are not trusted, because anyone can open it. */
export function withOutcome({ returnUrl, orderId }: NewOrder, outcome: "paid" | "canceled"): string {
  const url = new URL(returnUrl);
  url.searchParams.set("order_id", orderId);
  url.searchParams.set("outcome", outcome);
  return url.href;
}
