import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sharedBrowser, visit } from "#test/support/browser/browser.ts";
import { type Platform, startPlatform, untilReady, uploadClip } from "#test/support/browser/platform.ts";
import { png } from "#test/support/png.ts";
import { APPEARANCES, axeFaults } from "./axe.ts";
import { button, faultsOf, heading, link, signInAs } from "./console.ts";

const credentials = { email: "boss@example.com", password: "correct horse" };
let platform: Platform;
let browser: Browser;
let tenantId: number;
beforeAll(async () => {
  [platform, browser] = await Promise.all([startPlatform(), sharedBrowser()]);
  const { admin } = platform;
  tenantId = (await platform.as({ admin }).listTenants()).body[0].id;
  const body = { ...credentials, tenant_id: tenantId, role: "admin" };
  expect((await platform.as({ admin }).createTenantUser(body)).status).toBe(201);
});
afterAll(async () => {
  await platform?.close();
});

test("an admin changes the settings, and the player follows them", async () => {
  const boss = await signInAs(browser, platform.base, credentials);
  const { page } = boss;
  await link(page, "Settings").click();
  await page.getByLabel("Name", { exact: true }).fill("Acme Films");
  await page.getByLabel("Playback policy of new videos").selectOption("Public");
  await page.getByLabel("Delete sources after days").fill("30");
  await page.getByLabel("Accent color").fill("#ff0066");
  await page.getByLabel("Show the title").uncheck();
  await page.getByLabel("Viewers may download videos").check();
  await button(page, "Save").click();
  await page.getByText("Saved", { exact: true }).waitFor();
  await page.getByLabel("Logo").setInputFiles({ name: "logo.png", mimeType: "image/png", buffer: png(120, 40) });
  await button(page, "Upload").click();
  const logo = page.getByAltText("The current logo");
  await logo.waitFor();
  await page.reload();
  await expect.poll(() => page.getByLabel("Accent color").inputValue()).toBe("#ff0066");
  expect(await page.getByLabel("Show the title").isChecked()).toBe(false);
  await expect
    .poll(() => logo.evaluate((image) => (image as unknown as { naturalWidth: number }).naturalWidth))
    .toBe(120);
  const { body } = await platform.as({ admin: platform.admin }).getTenantSettings(tenantId);
  expect(body).toMatchObject({ name: "Acme Films", default_playback_policy: "public", delete_sources_after_days: 30 });

  const id = await uploadClip(platform, { title: "Film", filename: "film.mp4" });
  await untilReady(platform, id);
  for (const name of ["watch", "embed"]) {
    const seen = await visit(browser, `${platform.base}/${name}/${id}`);
    const shown = seen.page.locator("svc-player img.logo");
    await expect
      .poll(() => shown.evaluate((image) => (image as unknown as { naturalWidth: number }).naturalWidth))
      .toBe(120);
    const color = () =>
      seen.page.evaluate(
        `getComputedStyle(document.querySelector("svc-player").shadowRoot.querySelector("media-controller")).getPropertyValue("--_accent")`,
      );
    expect(await color()).toBe("#ff0066");
    const download = seen.page.waitForEvent("download");
    await button(seen.page, "Download").click();
    expect((await download).suggestedFilename()).toMatch(/\.mp4$/);
    expect(faultsOf(seen)).toEqual([]);
  }

  await button(page, "Remove logo").click();
  await logo.waitFor({ state: "detached" });
  expect(faultsOf(boss)).toEqual([]);
});

test("changes that are not saved are asked about before the page is left", async () => {
  const { page } = await signInAs(browser, platform.base, credentials);
  await link(page, "Settings").click();
  await page.getByLabel("Accent color").fill("#123456");
  const questions: string[] = [];
  let leaves = false;
  page.on("dialog", (dialog) => {
    questions.push(dialog.type());
    void (leaves ? dialog.accept() : dialog.dismiss());
  });
  await link(page, "Jobs").click();
  await expect.poll(() => questions).toEqual(["confirm"]);
  expect(await page.getByLabel("Accent color").inputValue()).toBe("#123456");
  leaves = true;
  await link(page, "Jobs").click();
  await heading(page, "Jobs").waitFor();
  await link(page, "Settings").click();
  await page.getByLabel("Accent color").waitFor();
  await link(page, "Jobs").click();
  await heading(page, "Jobs").waitFor();
  expect(questions).toEqual(["confirm", "confirm"]);
});

test("a file that is dropped on any page is uploaded", async () => {
  const { page } = await signInAs(browser, platform.base, credentials);
  await link(page, "Settings").click();
  await heading(page, "Settings").waitFor();
  const data = await page.evaluateHandle(
    `(() => { const data = new DataTransfer(); data.items.add(new File(["x"], "dropped.mp4", { type: "video/mp4" })); return data; })()`,
  );
  await page.dispatchEvent("main", "drop", { dataTransfer: data });
  await heading(page, "Uploads").waitFor();
  await page.getByText("dropped.mp4").first().waitFor();
});

test.each(APPEARANCES)("the page is accessible ($colorScheme, $width)", async ({ colorScheme, width }) => {
  const { page } = await signInAs(browser, platform.base, credentials, {
    colorScheme,
    viewport: { width, height: 800 },
  });
  await page.goto(`${platform.base}/console/settings`);
  await heading(page, "Settings").waitFor();
  await page.getByLabel("Encoding profile of new videos").waitFor();
  expect(await axeFaults(page)).toEqual([]);
});
