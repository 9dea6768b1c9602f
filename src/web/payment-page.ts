import { type Route, route } from "#platform/http/route.ts";
import { RETURN_PATH } from "#platform/outbound/payments/return-url.ts";
import { html } from "./html.ts";
import { respond } from "./page.ts";

const SAID = {
  paid: ["Thank you", "The payment is being confirmed. The plan changes when it is; you can close this window."],
  canceled: ["The payment was canceled", "Nothing was changed. You can close this window."],
  unknown: ["No payment in progress", "You can close this window."],
} as const;

/** Shows what the provider's redirect URL says, and reads nothing: anyone can open it with any order's id. */
export const paymentPageRoute: Route = route({
  method: "GET",
  path: RETURN_PATH,
  credential: "none",
  tag: "Pages",
  hidden: true,
  summary: "Show the page that payers return to",
  responses: { 200: null },
  async handle({ url }) {
    const outcome = url.searchParams.get("outcome");
    const [title, text] = SAID[outcome === "paid" || outcome === "canceled" ? outcome : "unknown"];
    return respond("watch", {
      status: 200,
      title,
      content: html`<div class="frame"><div class="message"><h1>${title}</h1><span>${text}</span></div></div>`,
      framedBy: [],
    });
  },
});
