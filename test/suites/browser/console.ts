import type { Browser, Page } from "playwright-core";
import { type Visit, visit } from "#test/support/browser/browser.ts";

/** A browser logs each response with an error status; the first request of a visitor asks whether there is a session. */
export const faultsOf = ({ faults }: Visit) => faults.filter((fault) => !/status of 401/.test(fault));
export const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
export const link = (page: Page, name: string) => page.getByRole("link", { name, exact: true });
export const heading = (page: Page, name: string) => page.getByRole("heading", { name, exact: true });

export async function signIn(page: Page, token: string): Promise<void> {
  await page.getByLabel("Admin token or API key").fill(token);
  await button(page, "Sign in").click();
  await heading(page, "Assets").waitFor();
}

/** The console of the server at `base`, after a person's sign-in. */
export async function signInAs(
  browser: Browser,
  base: string,
  { email, password }: { email: string; password: string },
  options?: Parameters<typeof visit>[2],
): Promise<Visit> {
  const seen = await visit(browser, `${base}/console`, options);
  await seen.page.getByLabel("Email").fill(email);
  await seen.page.getByLabel("Password").fill(password);
  await button(seen.page, "Sign in").click();
  await heading(seen.page, "Assets").waitFor();
  return seen;
}

/** The console of the server at `base`, after a sign-in with a token. */
export async function signedIn(
  browser: Browser,
  base: string,
  token: string,
  options?: Parameters<typeof visit>[2],
): Promise<Visit> {
  const seen = await visit(browser, `${base}/console`, options);
  await signIn(seen.page, token);
  return seen;
}

/** Milliseconds between successive requests of the page for `pathname` that were answered, by the browser's clock. */
export async function gapsBetween(page: Page, pathname: string): Promise<number[]> {
  const all = await page.evaluate(() =>
    performance.getEntriesByType("resource").map(({ name, startTime }) => ({ name, startTime })),
  );
  const times = all.filter(({ name }) => new URL(name).pathname === pathname).map(({ startTime }) => startTime);
  return times.slice(1).map((time, index) => time - (times[index] as number));
}
