import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sharedBrowser, visit } from "#test/support/browser/browser.ts";
import { type Platform, startPlatform } from "#test/support/browser/platform.ts";
import { startProvider } from "#test/support/oidc.ts";
import { axeFaults } from "./axe.ts";
import { faultsOf, heading, link } from "./console.ts";

let platform: Platform;
let browser: Browser;
let provider: Awaited<ReturnType<typeof startProvider>>;
beforeAll(async () => {
  provider = await startProvider();
  const env = {
    VODBOX_OIDC_ISSUER: provider.issuer,
    VODBOX_OIDC_CLIENT_ID: "vodbox",
    VODBOX_OIDC_CLIENT_SECRET: "client-secret",
    VODBOX_OIDC_TENANT_CLAIM: "tenant",
    VODBOX_OIDC_NAME: "Films ID",
  };
  [platform, browser] = await Promise.all([startPlatform(env), sharedBrowser()]);
  provider.redirectUri = `${platform.base}/api/v1/session/oidc/callback`;
});
afterAll(async () => {
  await platform?.close();
  await provider.close();
});

test("a person signs in with the provider, and one whom the provider does not place in a tenant is refused", async () => {
  provider.account.current = { sub: "eve", email: "eve@example.com" };
  const eve = await visit(browser, `${platform.base}/console`);
  await link(eve.page, "Sign in with Films ID").click();
  await eve.page.getByText("does not belong to a user", { exact: false }).waitFor();
  expect(await axeFaults(eve.page)).toEqual([]);

  provider.account.current = { sub: "ann", email: "ann@example.com", tenant: "web", name: "Ann" };
  const ann = await visit(browser, `${platform.base}/console`);
  await link(ann.page, "Sign in with Films ID").click();
  await heading(ann.page, "Assets").waitFor();
  await link(ann.page, "Account").click();
  await expect.poll(() => ann.page.getByLabel("Email").inputValue()).toBe("ann@example.com");
  await ann.page.reload();
  await heading(ann.page, "Account").waitFor();
  expect(faultsOf(ann)).toEqual([]);
});
