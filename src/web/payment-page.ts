import { type Route, route } from "../http/route.ts";
import { RETURN_PATH } from "../outbound/payments/return-url.ts";
import { html } from "./html.ts";
import { respond } from "./page.ts";

const SAID = {
  paid: ["Thank you", "The payment is being confirmed. The plan changes as soon as it is; you can close this window."],
  canceled: ["The payment was given up", "Nothing was changed. You can close this window."],
  unknown: ["Nothing to see here", "You can close this window."],
} as const;

/** Says what the provider's address says, and looks at nothing: anybody can come here with any order's id. */
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
