import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Page } from "playwright-core";
import { startBrowser } from "#test/support/browser/browser.ts";
import { type Demo, startDemo } from "./demo-server.ts";
import { keep } from "./keep.ts";
import { openConsole } from "./open-console.ts";

/** `node scripts/screenshots/guide.ts [SHOT…]` takes the images of docs/guide, by doing what the pages say. */
const PASSWORD = "north light";

type Shot = (page: Page, demo: Demo) => Promise<unknown>;
const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const toVideo = async (page: Page, { base, assetId }: Demo) => {
  await page.goto(`${base}/console/assets/${assetId}`);
  await button(page, "Share").first().waitFor();
};

const SHOTS: Record<string, Shot> = {
  upload: async (page, { base, film }) => {
    await page.goto(`${base}/console/uploads`);
    const named = join(dirname(film), "Opening night.mp4");
    copyFileSync(film, named);
    await page.locator('input[type="file"]').first().setInputFiles(named);
    await page.getByText("Waiting for a worker").or(page.getByText("%")).first().waitFor();
  },
  video: toVideo,
  share: async (page, demo) => {
    await toVideo(page, demo);
    await button(page, "Share").first().click();
    await page.getByLabel("Name", { exact: true }).fill("Press preview");
    await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
    await page.getByLabel("Most plays").fill("50");
  },
  shares: async (page, demo) => {
    await SHOTS.share?.(page, demo);
    await button(page, "Create").click();
    const shares = page.getByRole("heading", { name: "Shares" });
    await page.getByText("Press preview").waitFor();
    await shares.scrollIntoViewIfNeeded();
  },
  password: async (page, { base }) => {
    const link = page.locator(`a[href^="${base}/s/"]`).first();
    await page.goto((await link.getAttribute("href")) as string);
    await page.getByLabel("Password").fill(PASSWORD);
  },
  captions: async (page, demo) => {
    await page.goto(`${demo.base}/console/assets/${demo.assetId}?tab=subtitles`);
    await page.getByRole("tab", { name: "Subtitles" }).click();
    await button(page, "Upload subtitles").scrollIntoViewIfNeeded();
  },
  editor: async (page, demo) => {
    await SHOTS.captions?.(page, demo);
    await button(page, "Edit").last().click();
    await page.getByLabel("Text of cue 1").scrollIntoViewIfNeeded();
  },
  channel: async (page, { base }) => {
    await page.goto(`${base}/console/live`);
    await page
      .getByRole("link", { name: /main.stage/i })
      .first()
      .click();
    await page.getByText("Waiting for an encoder").first().waitFor();
  },
  studio: async (page, demo) => {
    await SHOTS.channel?.(page, demo);
    await page.getByRole("link", { name: "Go live" }).or(button(page, "Go live")).first().click();
    await page.getByLabel("Title").fill("Opening night");
  },
};

const FORM = { viewport: { width: 1120, height: 720 }, colorScheme: "light" } as const;

const chosen = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "vodbox-screenshot-"));
const demo = await startDemo(folder, { VODBOX_WHIP_PORT: "0", VODBOX_RTMP_PORT: "0" });
const browser = await startBrowser("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream");
try {
  for (const [name, take] of Object.entries(SHOTS)) {
    if (chosen.length > 0 && !chosen.includes(name)) continue;
    const page = await openConsole(browser, demo, "user", FORM);
    if (name === "password") await SHOTS.shares?.(page, demo);
    await take(page, demo);
    // Posters and the player appear one after the other.
    await page.waitForTimeout(2500);
    await keep(page, `guide/${name}`);
  }
} finally {
  await browser.close();
  await demo.stop();
  rmSync(folder, { recursive: true });
}
