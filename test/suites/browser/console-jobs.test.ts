import type { Browser, Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { sharedBrowser } from "#test/support/browser/browser.ts";
import { startPlatform, uploadClip } from "#test/support/browser/platform.ts";
import { callback, next, uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { nightly } from "#test/support/nightly.ts";
import { type RunningServer, startServer } from "#test/support/process.ts";
import { axeFaults } from "./axe.ts";
import { button, faultsOf, gapsBetween, link, signedIn } from "./console.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await sharedBrowser();
});

type Server = RunningServer & { key: string };
/** A server without a worker of its own: the tests are its workers. */
async function withoutWorkers(): Promise<Server> {
  const server = await startServer(`${emptyFolder()}/data`);
  const { admin, as } = server;
  const tenant = (await as({ admin }).createTenant({ name: "T", slug: "t" })).body.id;
  const scopes = ["assets:read", "assets:write"];
  const key = (await as({ admin }).createApiKey({ tenant_id: tenant, scopes })).body.token;
  return { ...server, key };
}

/** Queues a job whose source is no video, which no worker reads here. */
const queued = async (server: Server, title: string): Promise<number> =>
  (await uploaded(server, server.key, { title })).job.id;
const rowOf = (page: Page, title: string) => page.getByRole("row", { name: new RegExp(`^${title}`) });

test("the queue follows a job: waiting, progress, log, failure, retry, priority", async () => {
  const server = await withoutWorkers();
  const id = await queued(server, "Ocean");
  const seen = await signedIn(browser, server.base, server.admin);
  const { page } = seen;
  await link(page, "Jobs").click();
  const row = rowOf(page, "Ocean");
  await row.getByText("Queued", { exact: true }).waitFor();
  await row.getByText(/^0:0[1-9]$/).waitFor();

  await button(page, "Details").click();
  await page.getByLabel("Priority").selectOption("100");
  await page.getByText("Saved").waitFor();
  expect((await server.as({ admin: server.admin }).getJob(id)).body.priority).toBe(100);
  await button(page, "Close").click();

  const { body: contract } = await next(server, undefined, { worker_id: "encoder-7", version: "9.9" });
  await row.getByText("Running", { exact: true }).waitFor();
  await row.getByText("encoder-7").waitFor();
  await callback(server, contract, "heartbeat", { progress: 42, stage: "encoding", log_tail: "<b>frame 1</b>" });
  await row.getByText("42 % encoding").waitFor();
  await row.getByText("1 / 5").waitFor();
  await row.getByRole("button", { name: "Details" }).click();
  await page.getByText("<b>frame 1</b>").waitFor();
  // The log follows the job.
  await callback(server, contract, "heartbeat", { progress: 43, log_tail: "frame 2" });
  await page.getByText("frame 2").waitFor();
  expect(await axeFaults(page)).toEqual([]);
  await page.keyboard.press("Escape");

  await button(page, "Workers").click();
  await page
    .getByRole("row", { name: /^encoder-7 Busy Ocean/ })
    .getByText("9.9")
    .waitFor();
  expect(await axeFaults(page)).toEqual([]);
  await page.reload();
  await page.getByRole("row", { name: /^encoder-7 Busy Ocean/ }).waitFor();
  await button(page, "Queue").click();

  const failure = { code: "input_invalid", message: "No video.", retryable: false, log_tail: "the end" };
  await callback(server, contract, "fail", failure);
  await row.getByText("No video.").waitFor();
  await page.getByLabel("Status").selectOption("failed");
  await row.getByRole("button", { name: "Details" }).click();
  await page.getByText("the end").waitFor();
  await button(page, "Close").click();
  await row.getByRole("button", { name: "Retry", exact: true }).click();
  await page.getByText("No jobs.").waitFor();
  await page.getByLabel("Status").selectOption("queued");
  await row.getByRole("button", { name: "Cancel", exact: true }).click();
  await page.getByText("No jobs.").waitFor();
  expect(faultsOf(seen)).toEqual([]);
});

test("a tenant sees its jobs with titles, and neither workers, logs nor actions", async () => {
  const server = await withoutWorkers();
  await queued(server, "Ocean");
  const { body: contract } = await next(server);
  await callback(server, contract, "heartbeat", { progress: 5, log_tail: "a path of the machine" });
  const seen = await signedIn(browser, server.base, server.key);
  const { page } = seen;
  await link(page, "Jobs").click();
  await rowOf(page, "Ocean").getByRole("button", { name: "Details" }).click();
  await page.getByText("default", { exact: true }).waitFor();
  expect(await page.getByText("a path of the machine").count()).toBe(0);
  expect(await page.getByLabel("Priority").count()).toBe(0);
  await button(page, "Close").click();
  for (const name of ["Workers", "Cancel", "Retry"]) expect(await button(page, name).count(), name).toBe(0);
  await page.goto(`${server.base}/console/jobs?view=workers`);
  await rowOf(page, "Ocean").waitFor();
  expect(faultsOf(seen)).toEqual([]);
});

test("fifty events at once are a few requests", async () => {
  const server = await withoutWorkers();
  const { page } = await signedIn(browser, server.base, server.admin);
  await link(page, "Jobs").click();
  await page.getByText("No jobs.").waitFor();
  for (let n = 1; n <= 50; n++) await queued(server, `Film ${n}`);
  await rowOf(page, "Film 50").waitFor();
  const gaps = await gapsBetween(page, "/api/v1/transcoding_jobs");
  expect(gaps.length).toBeGreaterThan(0);
  // One in two seconds; the first event may follow the page's own request at once.
  expect(gaps.slice(1).filter((ms) => ms < 1000)).toEqual([]);
});

nightly("a real worker is listed with its version, and its log has the stages of the job", async () => {
  const platform = await startPlatform();
  try {
    await uploadClip(platform, { title: "Clip" });
    const { page } = await signedIn(browser, platform.base, platform.admin);
    await link(page, "Jobs").click();
    await rowOf(page, "Clip").getByText("Completed", { exact: true }).waitFor({ timeout: 60_000 });
    await rowOf(page, "Clip").getByRole("button", { name: "Details" }).click();
    await page.getByText(/\d\d:\d\d:\d\d encoding/).waitFor();
    await button(page, "Close").click();
    await button(page, "Workers").click();
    await page.getByRole("row", { name: /Idle .* \d+\.\d+\.\d+$/ }).waitFor();
  } finally {
    await platform.close();
  }
});
