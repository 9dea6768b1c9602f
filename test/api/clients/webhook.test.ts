import { createHmac } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { testApp } from "#test/support/app.ts";
import { importClient, installedClients } from "#test/support/clients.ts";
import { readyAsset } from "#test/support/flow.ts";
import { removeFolder } from "#test/support/folder.ts";
import { receiver } from "#test/support/receiver.ts";

let folder: string;
let verifyWebhook: (body: unknown, headers: unknown, secret: unknown, options?: unknown) => Promise<any>;

beforeAll(async () => {
  folder = await installedClients("client");
  ({ verifyWebhook } = await importClient(folder));
});
afterAll(() => removeFolder(folder));

const codeOf = (work: Promise<unknown>): Promise<string> =>
  work.then(
    () => "accepted",
    (error) => `${error.name}: ${error.code}`,
  );
const INVALID = "WebhookVerificationError: signature_invalid";
const MISSING = "WebhookVerificationError: signature_missing";
const OLD = "WebhookVerificationError: timestamp_outside_tolerance";

/** An endpoint that has received the event of an asset. */
async function scene() {
  const app = await testApp({ webhook_allow_cidrs: "127.0.0.0/8" });
  const key = await app.key((await app.tenant()).id);
  const there = await receiver();
  const body = { url: there.url, event_types: ["video.asset.ready"] };
  const made = await app.as(key).createWebhook(body);
  const deliver = async (title: string) => {
    await readyAsset(app, key, { title });
    await app.runTask("deliver-webhooks");
    return there.received.at(-1) as NonNullable<ReturnType<typeof there.received.at>>;
  };
  return { app, key, path: `/api/v1/webhooks/${made.body.id}`, secret: made.body.secret as string, deliver };
}

test("a delivery is accepted as text and as bytes, and returns its event", async () => {
  const { secret, deliver } = await scene();
  const { body, headers } = await deliver("Größe");
  const event = await verifyWebhook(body, headers, secret);
  expect([event.type, event.data.title]).toEqual(["video.asset.ready", "Größe"]);
  const fetched = new Headers({ "Svc-Signature": String(headers["svc-signature"]) });
  expect(await verifyWebhook(Buffer.from(body), fetched, [secret])).toEqual(event);
});

test("a forged, an old and a replayed delivery with another body are refused", async () => {
  const { secret, deliver } = await scene();
  const { body, headers } = await deliver("Film");
  const header = String(headers["svc-signature"]);
  expect(await codeOf(verifyWebhook(body, headers, "whsec_other"))).toBe(INVALID);
  expect(await codeOf(verifyWebhook(body.replace("Film", "Fame"), headers, secret))).toBe(INVALID);
  const t = Number(/t=(\d+)/.exec(header)?.[1]);
  const later = { "svc-signature": header.replace(String(t), String(t + 1)) };
  expect(await codeOf(verifyWebhook(body, later, secret))).toBe(INVALID);
  const signed = (at: number) => ({
    "svc-signature": `t=${at},v1=${createHmac("sha256", secret).update(`${at}.${body}`).digest("hex")}`,
  });
  expect(await codeOf(verifyWebhook(body, signed(t - 301), secret))).toBe(OLD);
  expect(await codeOf(verifyWebhook(body, signed(t + 400), secret))).toBe(OLD);
  expect(await codeOf(verifyWebhook(body, signed(t - 301), secret, { toleranceSeconds: 600 }))).toBe("accepted");
  expect(await codeOf(verifyWebhook(body, headers, secret, { toleranceSeconds: Number.NaN }))).toBe(OLD);
  for (const malformed of [
    "",
    "t=,v1=",
    `t=${t}`,
    `v1=${"0".repeat(64)}`,
    `t=${t},v1=zz`,
    `t=1e9,v1=${"0".repeat(64)}`,
  ])
    expect(await codeOf(verifyWebhook(body, { "svc-signature": malformed }, secret)), malformed).toBe(MISSING);
  expect(await codeOf(verifyWebhook(body, {}, secret))).toBe(MISSING);
  for (const nothing of ["", [], undefined])
    expect(await codeOf(verifyWebhook(body, headers, nothing))).toMatch(/^TypeError/);
  const many = { "svc-signature": `t=${t}${`,v1=${"0".repeat(64)}`.repeat(10_000)}` };
  expect(await codeOf(verifyWebhook(body, many, secret))).toBe(INVALID);
});

test("during a rotation either secret verifies, and a receiver may have both", async () => {
  const { app, key, path, secret, deliver } = await scene();
  await deliver("Before");
  const rotated = await app.call("POST", `${path}/rotate_secret`, { key });
  const { body, headers } = await deliver("During");
  for (const secrets of [secret, rotated.body.secret, [rotated.body.secret, secret]])
    expect((await verifyWebhook(body, headers, secrets)).data.title).toBe("During");
});
