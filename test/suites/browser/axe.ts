import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/**
 * What axe reports about the page as it is, with the elements concerned. It describes only these: a selector of each element that
 * passes a rule takes most of the time.
 */
export async function axeFaults(page: Page): Promise<string[]> {
  await page.evaluate(axe);
  const { violations }: any = await page.evaluate(`axe.run({ resultTypes: ["violations"] })`);
  return violations.map(({ id, nodes }: any) => `${id}: ${nodes.map(({ html }: any) => html).join(" ")}`);
}
