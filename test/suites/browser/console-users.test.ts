import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sharedBrowser, visit } from "#test/support/browser/browser.ts";
import { type Platform, startPlatform } from "#test/support/browser/platform.ts";
import { APPEARANCES, axeFaults } from "./axe.ts";
import { button, faultsOf, heading, link, signInAs as signInToConsole } from "./console.ts";

const PASSWORD = "correct horse";
let platform: Platform;
let browser: Browser;
beforeAll(async () => {
  [platform, browser] = await Promise.all([startPlatform(), sharedBrowser()]);
});
afterAll(async () => {
  await platform?.close();
});

const credentials = { email: "boss@example.com", password: PASSWORD };
const signInAs = (who: typeof credentials, options?: Parameters<typeof visit>[2]) =>
  signInToConsole(browser, platform.base, who, options);
const linksOf = (page: Page) => page.locator("nav a").allTextContents();

test("an admin invites a person, who joins, and loses a role and the account again", async () => {
  const { admin } = platform;
  const tenant = (await platform.as({ admin }).listTenants()).body[0];
  const body = { ...credentials, tenant_id: tenant.id, role: "admin" };
  expect((await platform.as({ admin }).createTenantUser(body)).status).toBe(201);
  const boss = await signInAs(credentials);
  await link(boss.page, "Users").click();
  await boss.page.getByRole("row", { name: /boss@example\.com/ }).waitFor();
  await button(boss.page, "Invite").click();
  const dialog = boss.page.getByRole("dialog");
  await dialog.getByLabel("Email").fill("ed@example.com");
  await dialog.getByLabel("Role").selectOption("Editor");
  await dialog.getByRole("button", { name: "Invite", exact: true }).click();
  const url = (await boss.page.locator(".notice code").textContent()) as string;

  const ed = await visit(browser, url);
  await ed.page.getByText("sign in as ed@example.com", { exact: false }).waitFor();
  await ed.page.getByLabel("Your name").fill("Ed");
  await ed.page.getByLabel("Password").fill(PASSWORD);
  await button(ed.page, "Create account").click();
  await heading(ed.page, "Assets").waitFor();
  expect(await linksOf(ed.page)).not.toContain("Users");
  expect(await linksOf(ed.page)).toContain("Account");
  const late = await visit(browser, url);
  await late.page.getByText("This invitation was used or revoked", { exact: false }).waitFor();

  await boss.page.reload();
  const row = boss.page.getByRole("row", { name: /ed@example\.com/ });
  await row.getByText("Editor").waitFor();
  await row.getByRole("button", { name: "Edit", exact: true }).click();
  await dialog.getByLabel("Role").selectOption("Viewer");
  await dialog.getByRole("button", { name: "Save", exact: true }).click();
  await row.getByText("Viewer").waitFor();
  // The only admin remains one.
  const own = boss.page.getByRole("row", { name: /boss@example\.com/ });
  await own.getByRole("button", { name: "Delete", exact: true }).click();
  await button(boss.page, "Confirm").click();
  await boss.page.getByText("only admin", { exact: false }).waitFor();
  await row.getByRole("button", { name: "Delete", exact: true }).click();
  await button(boss.page, "Confirm").click();
  await row.waitFor({ state: "detached" });
  await link(ed.page, "Account").click();
  await ed.page.getByText("Your session has ended.", { exact: false }).waitFor();
  expect(faultsOf(boss).filter((fault) => !/status of 409/.test(fault))).toEqual([]);
});

test("a person changes the name and the password, and ends other sessions", async () => {
  const { page } = await signInAs(credentials);
  const other = await signInAs(credentials);
  await link(page, "Account").click();
  await page.getByLabel("Name").fill("The boss");
  await button(page, "Save").click();
  await page.getByText("Saved", { exact: true }).waitFor();
  await page.reload();
  await expect.poll(() => page.getByLabel("Name").inputValue()).toBe("The boss");
  await page.getByLabel("Current password").fill("wrong");
  await page.getByLabel("New password").fill("battery staple");
  await button(page, "Change password").click();
  await page.getByText("The current password is wrong.").waitFor();
  await page.getByLabel("Current password").fill(PASSWORD);
  await button(page, "Change password").click();
  await page.getByText("The password is changed.").waitFor();
  await link(other.page, "Jobs").click();
  await other.page.getByText("Your session has ended.", { exact: false }).waitFor();
  const again = await signInAs({ ...credentials, password: "battery staple" });
  await page.reload();
  await button(page, "End all other sessions").click();
  await button(page, "End all other sessions").waitFor({ state: "detached" });
  await link(again.page, "Jobs").click();
  await again.page.getByText("Your session has ended.", { exact: false }).waitFor();
});

test.each(APPEARANCES)("the pages are accessible ($colorScheme, $width)", async ({ colorScheme, width }) => {
  const password = "battery staple";
  const { page } = await signInAs({ ...credentials, password }, { colorScheme, viewport: { width, height: 800 } });
  for (const name of ["users", "account"]) {
    await page.goto(`${platform.base}/console/${name}`);
    await heading(page, name === "users" ? "Users" : "Account").waitFor();
    await page.getByText("boss@example.com").first().or(page.getByLabel("Current password")).first().waitFor();
    expect(await axeFaults(page), name).toEqual([]);
  }
});
