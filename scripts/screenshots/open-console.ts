import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import type { Demo } from "./demo-server.ts";

/** The console after a sign-in as the operator, or as a person of the demo's tenant. */
export async function openConsole(
  browser: Browser,
  { base, admin, user }: Demo,
  as: "admin" | "user",
  options: BrowserContextOptions,
): Promise<Page> {
  const page = await browser.newPage(options);
  await page.goto(`${base}/console`);
  if (as === "admin") await page.getByLabel("Admin token or API key").fill(admin);
  else {
    await page.getByLabel("Email").fill(user.email);
    await page.getByLabel("Password").fill(user.password);
  }
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByRole("heading", { name: "Assets", exact: true }).waitFor();
  return page;
}
