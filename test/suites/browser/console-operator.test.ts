import { statSync } from "node:fs";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sharedBrowser, visit } from "#test/support/browser/browser.ts";
import { type Platform, startPlatform } from "#test/support/browser/platform.ts";
import { axeFaults } from "./axe.ts";
import { button, faultsOf, heading, link, signedIn } from "./console.ts";

let platform: Platform;
let browser: Browser;
beforeAll(async () => {
  const env = { VODBOX_ENV: "development", VODBOX_PAYMENTS: "simulated", VODBOX_LOG_LEVEL: "debug" };
  [platform, browser] = await Promise.all([startPlatform(env), sharedBrowser()]);
});
afterAll(async () => {
  await platform?.close();
});
const open = () => signedIn(browser, platform.base, platform.admin);

test("a tenant is created, changed, suspended, resumed and deleted; its users sign in and are removed", async () => {
  const seen = await open();
  const { page } = seen;
  await link(page, "Tenants").click();
  await button(page, "New tenant").click();
  await page.getByLabel("Name").fill("Films");
  await page.getByLabel("Slug").fill("films");
  await button(page, "Create").click();
  await link(page, "Films").click();
  await heading(page, "Films").waitFor();
  await page.getByLabel("Name", { exact: true }).fill("Films and more");
  await page.getByLabel("Plan").selectOption("enterprise");
  await page.getByLabel("Allowed origins").fill("https://a.example, https://b.example");
  await page.getByLabel("Delete sources after days").fill("30");
  await button(page, "Save").click();
  await heading(page, "Films and more").waitFor();
  const tenant = async () => (await platform.as({ admin: platform.admin }).getTenant("films")).body;
  expect(await tenant()).toMatchObject({
    name: "Films and more",
    plan_name: "enterprise",
    delete_sources_after_days: 30,
    allowed_origins: ["https://a.example", "https://b.example"],
    delete_analytics_after_days: null,
  });

  await button(page, "New user").click();
  await page.getByLabel("Email").fill("ann@example.com");
  await page.getByLabel("Password").fill("correct horse");
  await button(page, "Create").click();
  await page.getByRole("row", { name: /ann@example\.com/ }).waitFor();
  await button(page, "Pair a device").click();
  const code = await page.locator(".notice code").textContent();
  const redeemed = await platform.as().unchecked.createDeviceToken({ pairing_code: code, device_name: "TV" });
  expect([redeemed.status, redeemed.body.tenant_id]).toEqual([201, (await tenant()).id]);

  const ann = (await visit(browser, `${platform.base}/console`)).page;
  await ann.getByLabel("Email").fill("ann@example.com");
  await ann.getByLabel("Password").fill("correct horse");
  await button(ann, "Sign in").click();
  await heading(ann, "Assets").waitFor();
  expect(await link(ann, "Tenants").count()).toBe(0);
  const row = page.getByRole("row", { name: /ann@example\.com/ });
  await row.getByRole("button", { name: "New password", exact: true }).click();
  await page.getByRole("dialog").getByLabel("Password").fill("another horse");
  await page.getByRole("dialog").getByRole("button", { name: "Save", exact: true }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  // A changed password ends the user's sessions.
  await link(ann, "Jobs").click();
  await ann.getByText("Your session has ended.", { exact: false }).waitFor();

  await button(page, "Suspend").click();
  await button(page, "Confirm").click();
  await page.getByText("Suspended", { exact: true }).waitFor();
  expect((await tenant()).status).toBe("suspended");
  await button(page, "Resume").click();
  await page.getByText("Active", { exact: true }).waitFor();
  await row.getByRole("button", { name: "Delete", exact: true }).click();
  await button(page, "Confirm").click();
  await page.getByText("No users yet.").waitFor();

  await button(page, "Delete").click();
  await page.getByLabel("Type films to confirm").fill("film");
  await button(page, "Confirm").click();
  await page.getByRole("dialog").getByRole("alert").waitFor();
  await page.getByLabel("Type films to confirm").fill("films");
  await button(page, "Confirm").click();
  await heading(page, "Tenants").waitFor();
  await expect
    .poll(async () => (await platform.as({ admin: platform.admin }).getTenant("films")).status, {
      timeout: 30_000,
    })
    .toBe(404);
  expect(faultsOf(seen).filter((fault) => !/status of 422/.test(fault))).toEqual([]);
});

test("a signing key is made, its private key is shown once, and it is deleted", async () => {
  const seen = await open();
  const { page } = seen;
  await link(page, "API keys").click();
  await button(page, "New signing key").click();
  await page.getByLabel("Name").fill("Backend");
  await button(page, "Create").click();
  const shown = (await page.locator(".notice code").textContent()) ?? "";
  expect(Buffer.from(shown, "base64").toString()).toContain("PRIVATE KEY");
  const row = page.getByRole("row", { name: /Backend.*EdDSA.*Active/ });
  await row.getByRole("button", { name: "Delete", exact: true }).click();
  await button(page, "Confirm").click();
  await page.getByRole("row", { name: /Backend.*Revoked/ }).waitFor();
  await page.reload();
  await page.getByRole("row", { name: /Backend.*Revoked/ }).waitFor();
  expect(await page.locator(".notice code").count()).toBe(0);
  expect(faultsOf(seen)).toEqual([]);
});

test("a form is not sent before its tenants are loaded", async () => {
  const seen = await open();
  const { page } = seen;
  await link(page, "API keys").click();
  const loaded = Promise.withResolvers<void>();
  await page.route(/\/v1\/tenants\?/, async (route) => {
    await loaded.promise;
    await route.continue();
  });
  await button(page, "New signing key").click();
  await page.getByLabel("Name").fill("Early");
  expect(await button(page, "Create").isDisabled()).toBe(true);
  await page.getByLabel("Name").press("Enter");
  loaded.resolve();
  await button(page, "Create").click();
  await page.getByRole("row", { name: /Early.*EdDSA.*Active/ }).waitFor();
  expect(faultsOf(seen)).toEqual([]);
});

test("the operator sees disk, figures, storage, settings, and the log as it is written", async () => {
  const seen = await open();
  const { page } = seen;
  await link(page, "System").click();
  await page.getByText(/ of .* free/).waitFor();
  // The first interval ends after at most 15 seconds.
  await page.getByRole("img", { name: /^Memory: \d+(\.\d+)? MB/ }).waitFor({ timeout: 30_000 });
  await page.getByRole("row", { name: /^Browser 0 B 0 B 0 B/ }).waitFor();
  await link(page, "Settings").click();
  await page.getByRole("row", { name: /VODBOX_PAYMENTS.*simulated environment/ }).waitFor();
  expect(await page.getByRole("row", { name: /VODBOX_HOST/ }).count()).toBe(0);
  await page.getByLabel("Only those that differ from the default").uncheck();
  await page.getByPlaceholder("Find a setting").fill("address to listen");
  await page.getByRole("row", { name: /VODBOX_HOST.*127\.0\.0\.1/ }).waitFor();
  expect(await page.getByRole("row").count()).toBe(2);
  await link(page, "Log").click();
  const log = page.getByRole("list", { name: "Log" });
  await log.getByText(/^.* info serving /).waitFor();
  await page.getByLabel("Level").selectOption("debug");
  await page.getByPlaceholder("Find in the log").fill("/api/v1/live/channels/:id");
  await page.getByText("No lines.").waitFor();
  await platform.as(platform.key).getChannel(77);
  await log.getByText(/status=404/).waitFor();
  await button(page, "Pause").click();
  await button(page, "Follow").waitFor();
  expect(faultsOf(seen).filter((fault) => !/status of 404/.test(fault))).toEqual([]);
});

test("the operator makes a backup, downloads it, and deletes it", async () => {
  const seen = await open();
  const { page } = seen;
  await link(page, "System").click();
  await link(page, "Backup").click();
  await page.getByText("No backups in the data directory.").waitFor();
  await page.getByLabel("With all videos").check();
  await button(page, "Back up now").click();
  const row = page.getByRole("row", { name: /vodbox-\d{8}T\d{6}Z\.tar\.zst/ });
  await row.waitFor({ timeout: 60_000 });
  const [download] = await Promise.all([page.waitForEvent("download"), row.getByRole("link").click()]);
  expect(download.suggestedFilename()).toMatch(/^vodbox-\d{8}T\d{6}Z\.tar\.zst$/);
  expect(statSync(await download.path()).size).toBeGreaterThan(1000);
  await row.getByRole("button", { name: "Delete", exact: true }).click();
  await button(page, "Confirm").click();
  await page.getByText("No backups in the data directory.").waitFor();
  expect(faultsOf(seen).filter((fault) => !/status of 404/.test(fault))).toEqual([]);
});

test("the audit log is filtered by tenant and day", async () => {
  const { admin, as } = platform;
  const made = await as({ admin }).createTenant({ name: "Quiet", slug: "quiet" });
  await as({ admin }).updateTenant(made.body.id, { name: "Quiet one" });
  const seen = await open();
  const { page } = seen;
  await link(page, "System").click();
  const section = page.getByRole("region", { name: "Audit log" });
  await section.getByRole("row", { name: /POST \/api\/v1\/api_keys/ }).waitFor();
  await section.getByLabel("Tenant").selectOption("Quiet one");
  await section.getByRole("row", { name: /POST \/api\/v1\/api_keys/ }).waitFor({ state: "detached" });
  await section.getByRole("row", { name: new RegExp(`PATCH .* tenants ${made.body.id}`) }).waitFor();
  await section.getByLabel("Since").fill("2100-01-01");
  await section.getByText("No entries.").waitFor();
  // No full check has run.
  expect(faultsOf(seen).filter((fault) => !/status of 404/.test(fault))).toEqual([]);
});

test("a tenant sees what its month costs, orders a plan, and pays", async () => {
  const { admin, as, call } = platform;
  const { body: tenant } = await as({ admin }).createTenant({ name: "Payer", slug: "payer", plan_name: "pro" });
  await as({ admin }).createUser({ tenant_id: tenant.id, email_address: "pay@example.com", password: "correct horse" });
  const seen = await visit(browser, `${platform.base}/console`);
  const { page } = seen;
  await page.getByLabel("Email").fill("pay@example.com");
  await page.getByLabel("Password").fill("correct horse");
  await button(page, "Sign in").click();
  await heading(page, "Assets").waitFor();
  await link(page, "Usage").click();
  await page.getByRole("row", { name: /^Storage 0 GB months/ }).waitFor();
  await page.getByText("No orders yet.").waitFor();
  expect(await axeFaults(page)).toEqual([]);
  await page.getByLabel("Plan").selectOption("enterprise");
  await button(page, "Order plan").click();
  await page.getByRole("row", { name: /^enterprise .* Pending/ }).waitFor();
  const address = await page.locator(".notice").getByRole("link", { name: "Pay", exact: true }).getAttribute("href");
  await call("POST", "/api/v1/billing/webhook", {
    body: { event: "order.paid", order_id: new URL(String(address)).searchParams.get("simulated_order") },
    headers: { "x-svc-simulated-event": "order.paid" },
  });
  await expect.poll(async () => (await as({ admin }).getTenant("payer")).body.plan_name).toBe("enterprise");
  await page.reload();
  await page.getByRole("row", { name: /^enterprise .* Paid/ }).waitFor();
  expect(faultsOf(seen)).toEqual([]);
});
