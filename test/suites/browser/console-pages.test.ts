import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sharedBrowser } from "#test/support/browser/browser.ts";
import { type Platform, startPlatform } from "#test/support/browser/platform.ts";
import { receiver, status } from "#test/support/receiver.ts";
import { button, faultsOf, heading, link, signedIn } from "./console.ts";

let platform: Platform;
let browser: Browser;
beforeAll(async () => {
  [platform, browser] = await Promise.all([
    startPlatform({ VODBOX_WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8" }),
    sharedBrowser(),
  ]);
});
afterAll(async () => {
  await platform?.close();
});
const open = () => signedIn(browser, platform.base, platform.admin);

test("a webhook is created, tested, resent, paused and deleted", async () => {
  const target = await receiver(status(410));
  const seen = await open();
  const { page } = seen;
  await link(page, "Webhooks").click();
  await button(page, "New webhook").click();
  await page.getByLabel("URL").fill(target.url);
  await page.getByLabel("video.asset.ready").check();
  await button(page, "Create").click();
  expect(await page.locator(".notice code").textContent()).toMatch(/^whsec_/);
  await link(page, target.url).click();
  await heading(page, target.url).waitFor();

  // 410 disables the endpoint; the delivery shows why.
  await button(page, "Send test event").click();
  const row = page.getByRole("row", { name: /video\.asset\.ready/ });
  await row.getByText("Failed", { exact: true }).waitFor();
  await row.getByText("410").click();
  await row.getByText("no", { exact: true }).waitFor();
  await page.reload();
  await page.getByText("Disabled: ", { exact: false }).waitFor();
  await button(page, "Resume").click();
  await page.getByText("Active", { exact: true }).waitFor();
  target.behave((_, response) => response.writeHead(200).end("thanks"));
  await row.getByRole("button", { name: "Resend", exact: true }).click();
  await row.getByText("Delivered", { exact: true }).waitFor();
  await row.getByText("200").click();
  await row.getByText("thanks").waitFor();
  expect(target.received).toHaveLength(2);

  await button(page, "Rotate secret").click();
  await button(page, "Confirm").click();
  expect(await page.locator(".notice code").textContent()).toMatch(/^whsec_/);
  await button(page, "Pause").click();
  await page.getByText("Paused", { exact: true }).waitFor();
  await button(page, "Delete").click();
  await button(page, "Cancel").click();
  await button(page, "Delete").click();
  await button(page, "Confirm").click();
  await page.getByText("No webhooks yet.", { exact: false }).waitFor();
  expect(faultsOf(seen)).toEqual([]);
});

test("the operator sees the health of the system, checks everything, and reads the audit log", async () => {
  const seen = await open();
  const { page } = seen;
  await link(page, "System").click();
  await page
    .getByRole("row", { name: /database/i })
    .first()
    .waitFor();
  await page.getByText("Continuous backup: not configured", { exact: false }).waitFor();
  await page.getByText("No full check has run since the start.").waitFor();
  await button(page, "Check everything").click();
  await page.getByText("No fault was found.").waitFor({ timeout: 60_000 });
  await page
    .getByRole("row", { name: /POST \/api\/v1\/admin\/tenants/ })
    .first()
    .waitFor();
  expect(faultsOf(seen).filter((fault) => !/status of 404/.test(fault))).toEqual([]);
});

test("the page Import has the commands of a source, and shows what an import reports", async () => {
  const { as, key } = platform;
  const { body: run } = await as(key).createImportRun({ provider: "vimeo", total: 40 });
  const report = (body: unknown) => as(key).unchecked.updateImportRun(run.id, body);
  await report({ imported: 8, unchanged: 2, encoding: 3, bytes: 1_500_000_000 });
  const seen = await open();
  const { page } = seen;
  await link(page, "Import").click();
  await page.getByLabel("Import from").selectOption("Bunny Stream");
  const commands = page.locator("pre");
  expect(await commands.textContent()).toContain("export BUNNY_API_KEY=…");
  expect(await commands.textContent()).toMatch(/vodbox import bunny --dry-run\nvodbox import bunny$/);
  const row = page.getByRole("row", { name: /Vimeo/ });
  await row.getByText("10 of 40, 3 being encoded").waitFor();
  await row.getByText("1.5 GB").waitFor();
  // The page follows the command.
  const problem = { source_id: "77", title: "Trip", asset_id: null, reason: "Its file is missing" };
  await report({ status: "failed", imported: 37, failed: 1, encoding: 0, problems: [problem], problem_count: 1 });
  await row.getByText("With problems").waitFor();
  await row.getByRole("button", { name: "Problems: 1" }).click();
  await page.getByRole("dialog").getByRole("row", { name: "Trip Its file is missing" }).waitFor();
  expect(faultsOf(seen)).toEqual([]);
});

test("usage is listed for each tenant and month", async () => {
  const seen = await open();
  const { page } = seen;
  await link(page, "Usage").click();
  await page.getByRole("row", { name: /^web pro 0 B 0 B 0 min/ }).waitFor();
  await page.getByLabel("Month").fill("2020-01");
  await page.getByRole("row", { name: /^web pro/ }).waitFor();
  expect(faultsOf(seen)).toEqual([]);
});

test("a live channel is created, gets a new stream key, and is revoked", async () => {
  const seen = await open();
  const { page } = seen;
  await link(page, "Live").click();
  await button(page, "New channel").click();
  await page.getByLabel("Channel", { exact: true }).fill("main stage");
  await button(page, "Create").click();
  await page.getByRole("alert").getByText("channel: must have 2 to 63 characters", { exact: false }).waitFor();
  await page.getByLabel("Channel", { exact: true }).fill("main-stage");
  await page.getByLabel("Automatic captions of recordings").fill("en, pt-BR");
  const created = page.waitForResponse(
    (response) => response.request().method() === "POST" && response.status() === 201,
  );
  await button(page, "Create").click();
  expect((await (await created).json()).captions).toEqual(["en", "pt-BR"]);
  const first = await page.locator(".notice code").textContent();
  expect(first).toMatch(/^live_/);
  const row = page.getByRole("row", { name: /live\/main-stage/ });
  await row.getByRole("button", { name: "New stream key", exact: true }).click();
  await button(page, "Confirm").click();
  await page.locator(".notice code", { hasNotText: first as string }).waitFor();
  await row.getByRole("button", { name: "Delete", exact: true }).click();
  await button(page, "Confirm").click();
  await row.getByText("Revoked", { exact: true }).waitFor();
  expect(faultsOf(seen).filter((fault) => !/status of 422/.test(fault))).toEqual([]);
});
