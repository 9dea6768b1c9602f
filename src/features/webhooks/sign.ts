import { createHmac } from "node:crypto";
import type { EndpointRow } from "#storage/db/schema.ts";

export type Signed = {
  id: string;
  body: string;
  secrets: readonly string[];
  now: number;
  format?: EndpointRow["format"];
};

/**
 * The headers that authenticate a delivery, signed at `now` with every valid secret: `Svc-Signature` over `t.body`,
 * keyed with the whole secret, for libraries of Stripe and Mux; and those of Standard Webhooks 1.0.0 over `id.t.body`,
 * keyed with the decoded part after `whsec_`.
 */
export function signatureHeaders({ id, body, secrets, now, format = "svc" }: Signed): Record<string, string> {
  const t = Math.floor(now / 1000);
  const own = secrets.map((secret) => `v1=${createHmac("sha256", secret).update(`${t}.${body}`).digest("hex")}`);
  const standard = secrets.map((secret) => {
    const key = Buffer.from(secret.slice("whsec_".length), "base64");
    return `v1,${createHmac("sha256", key).update(`${id}.${t}.${body}`).digest("base64")}`;
  });
  return {
    [format === "mux" ? "Mux-Signature" : "Svc-Signature"]: [`t=${t}`, ...own].join(","),
    "webhook-id": id,
    "webhook-timestamp": String(t),
    "webhook-signature": standard.join(" "),
  };
}
