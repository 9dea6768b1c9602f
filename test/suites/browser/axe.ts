import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
import { rows } from "#test/support/amount.ts";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** In which pages are looked at: all in the nightly tier, the first one in the full one. */
export const APPEARANCES = rows(
  [
    { colorScheme: "light", width: 1280 },
    { colorScheme: "dark", width: 390 },
    { colorScheme: "dark", width: 1280 },
    { colorScheme: "light", width: 390 },
  ] as const,
  1,
);

/**
 * What axe reports about the page as it is, with the elements concerned. It describes only these: a selector of each element that
 * passes a rule takes most of the time.
 */
export async function axeFaults(page: Page, { iframes = true } = {}): Promise<string[]> {
  await page.evaluate(axe);
  const { violations }: any = await page.evaluate(
    `axe.run(document, { resultTypes: ["violations"], iframes: ${iframes}, rules: { "target-size": { enabled: true } } })`,
  );
  return violations.map(({ id, nodes }: any) => `${id}: ${nodes.map(({ html }: any) => html).join(" ")}`);
}
