import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { atEnd } from "./folder.ts";

export type Asked = { method: string; path: string; headers: IncomingMessage["headers"]; body: string };
type Answer = { status: number; body: unknown };

/**
 * Payment providers on a loopback port. Like the real ones they answer a repeat of an idempotency key with the first
 * response, and refuse it with another body.
 */
abstract class Service {
  readonly asked: Asked[] = [];
  /** Modifies the handling of a request after its order is created. */
  readonly mischief: ((response: ServerResponse) => void)[] = [];
  protected readonly answers = new Map<string, { request: string; answer: Answer }>();
  readonly #server: Server;

  constructor() {
    this.#server = createServer((request, response) => void this.#receive(request, response));
    atEnd(() => this.close());
  }

  async listen(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    return this;
  }

  get base(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Orders that were created. */
  get made(): number {
    return this.answers.size;
  }

  protected abstract answer(asked: Asked): Answer;

  /** One response for each key, however often it is requested. */
  protected once(key: string | undefined, request: string, make: () => Answer): Answer {
    if (!key) return { status: 400, body: { error: { message: "no idempotency key" } } };
    const known = this.answers.get(key);
    if (known && known.request !== request) return { status: 400, body: { error: { type: "idempotency_error" } } };
    const answer = known?.answer ?? make();
    this.answers.set(key, { request, answer });
    return answer;
  }

  async #receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const { method = "", url = "", headers } = request;
    const asked = { method, path: url, headers, body: Buffer.concat(chunks).toString() };
    this.asked.push(asked);
    const { status, body } = this.answer(asked);
    const act = method === "POST" && !url.includes("oauth2") ? this.mischief.shift() : undefined;
    if (act) return act(response);
    const isText = typeof body === "string";
    response.writeHead(status, { "content-type": isText ? "text/plain" : "application/json" });
    response.end(isText ? body : JSON.stringify(body));
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

export const STRIPE_KEY = "sk_test_the_key_of_the_tests";

class Stripe extends Service {
  refuse = false;

  protected answer({ method, path, headers, body }: Asked): Answer {
    const isForm = headers["content-type"] === "application/x-www-form-urlencoded";
    if (method !== "POST" || path !== "/v1/checkout/sessions" || !isForm) return { status: 404, body: {} };
    if (headers.authorization !== `Bearer ${STRIPE_KEY}`)
      return { status: 401, body: { error: { type: "invalid_request_error" } } };
    const form = new URLSearchParams(body);
    const key = headers["idempotency-key"];
    return this.once(typeof key === "string" ? key : undefined, body, () => {
      if (this.refuse) return { status: 402, body: { error: { type: "card_error", message: "no" } } };
      const id = `cs_test_${this.made + 1}`;
      const session = { id, object: "checkout.session", url: `https://checkout.stripe.com/c/pay/${id}` };
      return { status: 200, body: { ...session, client_reference_id: form.get("client_reference_id") } };
    });
  }
}

class PayPal extends Service {
  /** By the last segment of its URL. */
  readonly certificates = new Map<string, string>();
  /** The result of the next capture. */
  captured = { status: "COMPLETED", amount: { value: "19.00", currency_code: "USD" } };

  protected answer({ method, path, headers, body }: Asked): Answer {
    const certificate = this.certificates.get(path.split("/").at(-1) ?? "");
    if (method === "GET") return certificate ? { status: 200, body: certificate } : { status: 404, body: "" };
    if (path === "/v1/oauth2/token") {
      const isUs = headers.authorization === `Basic ${Buffer.from("client:client-secret").toString("base64")}`;
      const isRight = isUs && body === "grant_type=client_credentials";
      return isRight ? { status: 200, body: { access_token: "A21", expires_in: 32_400 } } : { status: 401, body: {} };
    }
    if (headers.authorization !== "Bearer A21") return { status: 401, body: {} };
    const key = headers["paypal-request-id"];
    const requestId = typeof key === "string" ? key : undefined;
    if (path === "/v2/checkout/orders")
      return this.once(requestId, body, () => {
        const id = `PP-${this.made + 1}`;
        const links = [
          { rel: "self", href: `${this.base}/v2/checkout/orders/${id}` },
          { rel: "payer-action", href: `https://www.sandbox.paypal.com/checkoutnow?token=${id}` },
        ];
        return { status: 200, body: { id, status: "PAYER_ACTION_REQUIRED", links } };
      });
    if (/^\/v2\/checkout\/orders\/PP-\d+\/capture$/.test(path))
      return this.once(requestId, body, () => ({
        status: 201,
        body: { status: "COMPLETED", purchase_units: [{ payments: { captures: [this.captured] } }] },
      }));
    return { status: 404, body: {} };
  }
}

export const stripeService = () => new Stripe().listen();
export const paypalService = () => new PayPal().listen();
