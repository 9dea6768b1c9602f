import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import type { Page } from "playwright-core";
import { paths } from "../build/paths.ts";

const MAX_BYTES = 150_000;

export const ffmpeg = (...args: string[]) => execFileSync("ffmpeg", ["-nostdin", "-v", "error", "-y", ...args]);

/** Writes what `page` shows to `docs/images/NAME.webp`, small enough to appear next to the text, and closes the page. */
export async function keep(page: Page, name: string): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "vodbox-screenshot-"));
  const taken = join(folder, "taken.png");
  const result = join(paths.root, "docs/images", `${name}.webp`);
  await page.screenshot({ path: taken });
  await page.close();
  mkdirSync(dirname(result), { recursive: true });
  ffmpeg("-i", taken, "-c:v", "libwebp", "-quality", "85", "-frames:v", "1", result);
  rmSync(folder, { recursive: true });
  const { size } = statSync(result);
  if (size > MAX_BYTES) throw new Error(`${result} has ${size} bytes, more than ${MAX_BYTES}`);
  console.log(`${relative(paths.root, result)}: ${Math.round(size / 1000)} kB`);
}
