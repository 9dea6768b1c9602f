import { Secret, TOTP } from "otpauth";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sharedBrowser, visit } from "#test/support/browser/browser.ts";
import { type Platform, startPlatform } from "#test/support/browser/platform.ts";
import { uploaded } from "#test/support/flow.ts";
import { linkIn, startSmtp } from "#test/support/smtp.ts";
import { APPEARANCES, axeFaults } from "./axe.ts";
import { button, faultsOf, heading, link, signInAs } from "./console.ts";

const PASSWORD = "correct horse";
let platform: Platform;
let browser: Browser;
let smtp: Awaited<ReturnType<typeof startSmtp>>;
beforeAll(async () => {
  smtp = await startSmtp();
  const env = { VODBOX_SMTP_URL: smtp.url, VODBOX_SMTP_FROM: "films@example.com" };
  [platform, browser] = await Promise.all([startPlatform(env), sharedBrowser()]);
});
afterAll(async () => {
  await platform?.close();
  await smtp.close();
});

/** A new admin of the tenant. */
async function person(name: string) {
  const { admin } = platform;
  const [tenant] = (await platform.as({ admin }).listTenants()).body;
  const credentials = { email: `${name}@example.com`, password: PASSWORD };
  const body = { ...credentials, tenant_id: tenant.id, role: "admin" };
  expect((await platform.as({ admin }).createTenantUser(body)).status).toBe(201);
  return credentials;
}

const codeOf = (secret: string, steps = 0) =>
  new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: Date.now() + steps * 30_000 });

test("a person sets up a second factor, and signs in with a code and with a recovery code", async () => {
  const credentials = await person("ann");
  const ann = await signInAs(browser, platform.base, credentials);
  const { page } = ann;
  await link(page, "Account").click();
  await button(page, "Set up").click();
  await page.getByAltText("QR code of the secret").waitFor();
  const secret = (await page.locator("section[aria-labelledby=second-factor] code").textContent()) as string;
  await page.getByLabel("Code").fill(codeOf(secret));
  await button(page, "Confirm").click();
  await button(page, "Switch off").waitFor();
  const recovery = ((await page.locator(".notice code").textContent()) as string).split(" ");
  expect(recovery).toHaveLength(10);
  await button(page, "Sign out").click();

  const begin = async (code: string) => {
    // The page Account has a field of the same name.
    await button(page, "Sign in").waitFor();
    await page.getByLabel("Email").fill(credentials.email);
    await page.getByLabel("Password").fill(PASSWORD);
    await button(page, "Sign in").click();
    await page.getByLabel("Code").fill("000000");
    await button(page, "Sign in").click();
    await page.getByText("The code is wrong", { exact: false }).waitFor();
    await page.getByLabel("Code").fill(code);
    await button(page, "Sign in").click();
    await heading(page, "Assets").waitFor();
  };
  await begin(codeOf(secret, 1));
  await button(page, "Sign out").click();
  await begin(recovery[0] as string);
  await link(page, "Account").click();
  await page.getByLabel("Code").fill(recovery[1] as string);
  await button(page, "Switch off").click();
  await button(page, "Set up").waitFor();
  expect(faultsOf(ann)).toEqual([]);
});

test("a person who forgot the password sets another one by the link in a mail", async () => {
  const { email } = await person("bob");
  const bob = await visit(browser, `${platform.base}/console`);
  const { page } = bob;
  await button(page, "Forgot password").click();
  await page.getByRole("dialog").getByLabel("Email").fill(email);
  await button(page, "Send link").click();
  await page.getByText("a link is on its way", { exact: false }).waitFor();
  await expect.poll(() => smtp.mails.length).toBe(1);
  const url = linkIn(smtp.mails[0] as never);
  await page.goto(url);
  await page.getByLabel("New password").fill("battery staple");
  await button(page, "Save").click();
  await page.getByText("The password is set.", { exact: false }).waitFor();
  await link(page, "Sign in").click();
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Password").fill("battery staple");
  await button(page, "Sign in").click();
  await heading(page, "Assets").waitFor();
  expect(faultsOf(bob)).toEqual([]);
});

test("language and theme are those of the person, and each page's title names it and the tenant", async () => {
  const credentials = await person("cem");
  const first = await signInAs(browser, platform.base, credentials);
  await expect.poll(() => first.page.title()).toBe("Assets · Browser");
  await first.page.getByRole("button", { name: credentials.email }).click();
  await first.page.getByLabel("Theme").selectOption("Dark");
  await first.page.getByLabel("Language").selectOption("Deutsch");
  await first.page.keyboard.press("Escape");
  await link(first.page, "Aktivität").click();
  await expect.poll(() => first.page.title()).toBe("Aktivität · Browser");
  await first.page.getByText("update_me").first().waitFor();
  // In another browser, too.
  const second = await visit(browser, `${platform.base}/console`);
  await expect.poll(() => second.page.title()).toBe("Sign in · vodbox");
  await second.page.getByLabel("Email").fill(credentials.email);
  await second.page.getByLabel("Password").fill(PASSWORD);
  await button(second.page, "Sign in").click();
  await heading(second.page, "Videos").waitFor();
  await expect.poll(() => second.page.title()).toBe("Videos · Browser");
  expect(await second.page.locator("html").getAttribute("data-theme")).toBe("dark");
  expect(faultsOf(second)).toEqual([]);
});

test("a failed encode rings the bell, leads to the video, and is mailed to those who chose that", async () => {
  const credentials = await person("eve");
  const eve = await signInAs(browser, platform.base, credentials);
  const { page } = eve;
  await link(page, "Account").click();
  await page.getByLabel("Encoding failed: By mail").check();
  await expect.poll(() => page.getByLabel("Encoding failed: By mail").isChecked()).toBe(true);
  await uploaded(platform, platform.key, { title: "Broken film" });
  await button(page, "Notifications, 1 unread").click();
  await page.getByRole("dialog").getByText("Broken film", { exact: false }).click();
  await heading(page, "Broken film").waitFor();
  await button(page, "Notifications").waitFor();
  await expect
    .poll(() => smtp.mails.some(({ to, text }) => to[0] === credentials.email && text.includes("Broken")))
    .toBe(true);
  expect(faultsOf(eve)).toEqual([]);
  await button(page, "Notifications").click();
  await page.getByRole("dialog").getByText("Broken film", { exact: false }).waitFor();
  expect(await axeFaults(page)).toEqual([]);
});

test.each(APPEARANCES)("the pages are accessible ($colorScheme, $width)", async ({ colorScheme, width }) => {
  const credentials = await person(`dan-${width}`);
  const { page } = await signInAs(browser, platform.base, credentials, {
    colorScheme,
    viewport: { width, height: 800 },
  });
  await page.goto(`${platform.base}/console/activity`);
  await heading(page, "Activity").waitFor();
  await page.getByText("create_session").first().waitFor();
  expect(await axeFaults(page), "activity").toEqual([]);
  await page.goto(`${platform.base}/console/account`);
  await button(page, "Set up").click();
  await page.getByAltText("QR code of the secret").waitFor();
  expect(await axeFaults(page), "account").toEqual([]);
  const other = await visit(browser, `${platform.base}/console/reset/unknown`, {
    colorScheme,
    viewport: { width, height: 800 },
  });
  await other.page.getByLabel("New password").waitFor();
  expect(await axeFaults(other.page), "reset").toEqual([]);
});
