import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sharedBrowser } from "#test/support/browser/browser.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { type RunningServer, startServer } from "#test/support/process.ts";
import { receiver, status } from "#test/support/receiver.ts";
import { axeFaults } from "./axe.ts";
import { button, faultsOf, heading, link, signedIn } from "./console.ts";

let server: RunningServer;
let browser: Browser;
let tenant: number;
beforeAll(async () => {
  [server, browser] = await Promise.all([
    startServer(`${emptyFolder()}/data`, { env: { VODBOX_WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8" } }),
    sharedBrowser(),
  ]);
  const { admin, as } = server;
  tenant = (await as({ admin }).createTenant({ name: "T", slug: "t" })).body.id;
});
afterAll(async () => {
  server?.child.kill("SIGTERM");
  await server?.ended;
});
const keyWith = async (scopes: string[]) =>
  (await server.as({ admin: server.admin }).createApiKey({ tenant_id: tenant, scopes })).body.token as string;

/** An endpoint whose receiver has refused so many test events. */
async function refused(count: number) {
  const target = await receiver(status(400));
  const { admin, as } = server;
  const made = await as({ admin }).createWebhook({ tenant_id: tenant, url: target.url });
  for (let n = 0; n < count; n++) await as({ admin }).testWebhook(made.body.id);
  const failed = async () => (await as({ admin }).listDeliveries(made.body.id, { status: "failed" })).body.length;
  await expect.poll(failed, { timeout: 30_000 }).toBe(count);
  return { target, page: `${server.base}/console/webhooks/${made.body.id}` };
}

test("a delivery shows its request and response, and all failed ones are resent, also those not loaded", async () => {
  const { target, page: address } = await refused(60);
  const seen = await signedIn(browser, server.base, await keyWith(["webhooks:read", "webhooks:write"]));
  const { page } = seen;
  await page.goto(address);
  const row = page.getByRole("row", { name: /video\.asset\.ready/ }).first();
  await row.getByRole("button", { name: "Details" }).click();
  const body = page.getByRole("region", { name: "Request: Body" });
  const sent = target.received.map((one) => one.json.id);
  const shown = JSON.parse((await body.textContent()) ?? "");
  expect(shown).toEqual(target.received[sent.indexOf(shown.id)]?.json);
  const headers = (await page.getByRole("region", { name: "Request: Headers" }).textContent()) ?? "";
  expect(headers).toContain("Svc-Event: video.asset.ready");
  expect(headers).not.toMatch(/signature/i);
  expect(await page.getByRole("region", { name: "Response: Body" }).textContent()).toBe("no");
  await page.getByText(/\d ms/).first().waitFor();
  expect(await axeFaults(page)).toEqual([]);
  await button(page, "Close").click();

  target.behave(status(200));
  target.received.length = 0;
  await button(page, "Resend all failed").click();
  await page.getByText("Queued again: 60").waitFor();
  await expect.poll(() => new Set(target.received.map((one) => one.json.id)).size, { timeout: 30_000 }).toBe(60);
  await row.getByText("Delivered", { exact: true }).waitFor();
  await button(page, "Resend all failed").click();
  await page.getByText("No delivery has failed.").waitFor();
  expect(faultsOf(seen)).toEqual([]);
});

test("an endpoint is edited, and what the API refuses is shown", async () => {
  const { page: address } = await refused(0);
  const seen = await signedIn(browser, server.base, server.admin);
  const { page } = seen;
  await page.goto(address);
  await button(page, "Edit").click();
  await page.getByLabel("URL").fill("ftp://example.com/");
  await button(page, "Save").click();
  await page.getByRole("alert").getByText("url: cannot be delivered to", { exact: false }).waitFor();
  await page.getByLabel("URL").fill("https://example.com/new");
  await page.getByLabel("Description").fill("Ours");
  await page.getByLabel("video.job.failed").check();
  expect(await axeFaults(page)).toEqual([]);
  await button(page, "Save").click();
  await heading(page, "https://example.com/new").waitFor();
  await page.getByText("Ours", { exact: true }).waitFor();
  await button(page, "Edit").click();
  expect(await page.getByLabel("video.job.failed").isChecked()).toBe(true);
  expect(await page.getByLabel("video.asset.ready").isChecked()).toBe(false);
  expect(faultsOf(seen).filter((fault) => !/status of 422/.test(fault))).toEqual([]);
});

test("a session that may only read sees deliveries and no actions", async () => {
  const { page: address } = await refused(1);
  const { page } = await signedIn(browser, server.base, await keyWith(["webhooks:read"]));
  await link(page, "Webhooks").click();
  await page.goto(address);
  await button(page, "Details").click();
  await page.getByRole("region", { name: "Request: Body" }).waitFor();
  await button(page, "Close").click();
  for (const name of ["Resend", "Resend all failed", "Edit", "Delete", "Rotate secret"])
    expect(await button(page, name).count(), name).toBe(0);
});
