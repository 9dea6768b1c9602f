import * as v from "valibot";
import { alternatives, HttpError, UserError } from "#lib/base";
import { PAYMENT_KINDS } from "#model/enums.ts";
import { Text } from "#platform/http/schemas.ts";
import { InvalidSignature, type PaymentProvider, type PaymentService } from "./provider.ts";

const Simulated = v.object({ event: v.literal("order.paid"), order_id: Text(100) });

/** For development: anyone can pay an order. */
export const simulated: PaymentService = {
  check({ env }) {
    if (env === "development") return;
    const others = [...PAYMENT_KINDS.filter((kind) => kind !== "simulated"), "off"];
    throw new UserError(
      `VODBOX_PAYMENTS=simulated completes orders without payment and requires VODBOX_ENV=development. Use ${alternatives(others)}.`,
      2,
    );
  },
  open({ config, baseUrl }) {
    simulated.check(config);
    return simulatedPayments(baseUrl);
  },
};

/** `baseUrl` is the base of the payment page's URL. */
function simulatedPayments(baseUrl: () => string): PaymentProvider {
  return {
    kind: "simulated",
    create: async ({ orderId }) => ({
      providerOrderId: `sim_${orderId}`,
      checkoutUrl: `${baseUrl()}/docs?simulated_order=${orderId}`,
    }),
    async verify({ headers, body }) {
      if (headers.get("x-svc-simulated-event") !== "order.paid")
        throw new InvalidSignature("The event is not order.paid.");
      const { order_id } = parsed(body);
      const eventId = `order.paid:${order_id}`;
      return {
        eventId,
        type: "order.paid",
        orderId: order_id,
        providerOrderId: null,
        outcome: "paid" as const,
        amount: "order" as const,
      };
    },
    capture: async () => null,
  };
}

function parsed(body: Uint8Array): v.InferOutput<typeof Simulated> {
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch {
    throw new HttpError(400, "invalid_json", "The body is not valid JSON in UTF-8.");
  }
  const result = v.safeParse(Simulated, json);
  if (result.success) return result.output;
  throw new HttpError(422, "parameter_missing", 'Send {"event": "order.paid", "order_id": "ord_…"}.');
}
