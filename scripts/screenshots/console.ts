import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { startBrowser } from "#test/support/browser/browser.ts";
import { type Demo, startDemo } from "./demo-server.ts";
import { keep } from "./keep.ts";
import { openConsole } from "./open-console.ts";

/**
 * `node scripts/screenshots/console.ts [PAGE…]` takes the documents' screenshots of the console's pages: light, dark and on
 * a phone.
 */
const FORMS = {
  light: { viewport: { width: 1280, height: 800 }, colorScheme: "light" },
  dark: { viewport: { width: 1280, height: 800 }, colorScheme: "dark" },
  phone: { viewport: { width: 390, height: 780 }, colorScheme: "light" },
} as const;

type Shot = { path(demo: Demo): string; as: "admin" | "user"; before?(page: Page, demo: Demo): Promise<unknown> };
const at = (path: string, as: Shot["as"] = "user"): Shot => ({ path: () => path, as });

const SHOTS: Record<string, Shot> = {
  assets: at("assets"),
  asset: { path: ({ assetId }) => `assets/${assetId}`, as: "user" },
  uploads: at("uploads"),
  jobs: { ...at("jobs"), before: (_, demo) => demo.encodeAnother() },
  webhooks: at("webhooks"),
  webhook: { path: ({ webhookId }) => `webhooks/${webhookId}`, as: "user" },
  analytics: at("analytics"),
  "analytics-asset": { path: ({ assetId }) => `analytics?asset=${assetId}`, as: "user" },
  live: at("live"),
  tenants: at("tenants", "admin"),
  tenant: at("tenants/1", "admin"),
  keys: at("keys"),
  usage: at("usage"),
  system: at("system", "admin"),
  "system-backup": at("system?view=backup", "admin"),
  "system-settings": at("system?view=settings", "admin"),
  "system-log": at("system?view=log", "admin"),
};

const chosen = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), "vodbox-screenshot-"));
const demo = await startDemo(folder);
const browser = await startBrowser();
try {
  for (const form of Object.keys(FORMS) as (keyof typeof FORMS)[])
    for (const [name, { path, as, before }] of Object.entries(SHOTS)) {
      if (chosen.length > 0 && !chosen.includes(name)) continue;
      const page = await openConsole(browser, demo, as, FORMS[form]);
      await before?.(page, demo);
      await page.goto(`${demo.base}/console/${path(demo)}`);
      // Posters, charts and the player appear one after the other.
      await page.waitForLoadState("load");
      await page.waitForTimeout(2500);
      await keep(page, `console/${name}-${form}`);
    }
} finally {
  await browser.close();
  await demo.stop();
  rmSync(folder, { recursive: true });
}
