import { sql } from "drizzle-orm";
import { afterEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { signIn, withSession } from "#test/support/sessions.ts";
import { linkIn, startSmtp } from "#test/support/smtp.ts";
import { typedClient } from "#test/support/typed-client.ts";

const PASSWORD = "correct horse";
const HOUR_MS = 3_600_000;
const FROM = "Films <films@example.com>";
const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of open.splice(0)) await one.close();
});

async function start(options: Parameters<typeof startSmtp>[0] = {}, query = "") {
  const smtp = await startSmtp(options);
  const app = await testApp({ smtp_url: `${smtp.url}${query}`, smtp_from: FROM, rate_limit_session: "1000/60" });
  open.push(app, smtp);
  return { app, smtp };
}

async function person(app: TestApp, fields: Record<string, unknown> = {}) {
  const tenant = await app.tenant(fields);
  const email = `ann@${tenant.slug}.example`;
  const body = { tenant_id: tenant.id, email, role: "admin", password: PASSWORD };
  expect((await app.as({ admin: app.admin }).createTenantUser(body)).status).toBe(201);
  const call = withSession(app, await signIn(app, { email, password: PASSWORD }));
  return { tenant, email, call, me: typedClient(call)() };
}

const request = (app: TestApp, email: string) => app.as().requestPasswordReset({ email });
const reset = (app: TestApp, code: string, new_password = "battery staple") =>
  app.as().resetPassword(code, { new_password });
const codeOf = (url: string) => url.split("/").at(-1) as string;

describe("a password reset", () => {
  test("is mailed to the user, works once, and ends sessions and device tokens", async () => {
    const { app, smtp } = await start();
    const { email, me } = await person(app);
    const device = await app.as().createDeviceToken({ email_address: email, password: PASSWORD });
    const answers = [await request(app, email.toUpperCase()), await request(app, "unknown@example.com")];
    expect(answers.map(({ status, text }) => [status, text])).toEqual([
      [202, ""],
      [202, ""],
    ]);
    await app.runTask("send-mail");
    expect(smtp.mails.map(({ to }) => to)).toEqual([[email]]);
    expect(smtp.mails[0]?.text).toContain("From: Films <films@example.com>");
    const link = linkIn(smtp.mails[0] as never);
    expect(link).toMatch(/^http:\/\/vodbox\.test\/console\/reset\/\w{32}$/);
    expectError(await reset(app, codeOf(link), "short"), 422, "validation_failed");
    const both = await Promise.all([reset(app, codeOf(link)), reset(app, codeOf(link))]);
    expect(both.map(({ status }) => status).toSorted()).toEqual([204, 410]);
    expectError(await reset(app, codeOf(link)), 410, "reset_ended");
    expectError(await reset(app, "unknown"), 404, "not_found");
    expect((await me.getMe()).status).toBe(401);
    expect((await app.as(device.body.token).listAssets()).status).toBe(401);
    const again = withSession(app, await signIn(app, { email, password: "battery staple" }));
    const actions = (await again("GET", "/api/v1/activity?action=reset_password")).body;
    expect(actions).toMatchObject([{ actor: email }]);
    expect(JSON.stringify(actions)).not.toContain(codeOf(link));
    // Nothing is left to be sent.
    await app.runTask("send-mail");
    expect(smtp.mails).toHaveLength(1);
  });

  test("expires after an hour", async () => {
    const { app, smtp } = await start();
    const { email } = await person(app);
    await request(app, email);
    await app.runTask("send-mail");
    app.advance(HOUR_MS);
    const code = codeOf(linkIn(smtp.mails[0] as never));
    expectError(await reset(app, code), 410, "reset_ended");
    app.advance(31 * 24 * HOUR_MS);
    await app.runTask("prune-password-resets");
    expectError(await reset(app, code), 404, "not_found");
  });

  test("is limited to three mails an hour, silently", async () => {
    const { app, smtp } = await start();
    const { email } = await person(app);
    for (let n = 0; n < 6; n++) expect((await request(app, email)).status).toBe(202);
    await app.runTask("send-mail");
    expect(smtp.mails).toHaveLength(3);
  });

  test("is printed by the operator, and needs no mail", async () => {
    const app = await testApp();
    open.push(app);
    const { email } = await person(app);
    expect((await request(app, email)).status).toBe(202);
    await app.runTask("send-mail");
    const link = await app.as({ admin: app.admin }).createResetLink(email);
    expect(link.status, link.text).toBe(201);
    expect((await reset(app, codeOf(link.body.url))).status).toBe(204);
    await signIn(app, { email, password: "battery staple" });
    const { text } = await app.as({ admin: app.admin }).listAuditEntries();
    expect(text).not.toContain(codeOf(link.body.url));
  });
});

describe("mail", () => {
  test("of an invitation has its link, and no header of a tenant's making", async () => {
    const { app, smtp } = await start();
    const { me } = await person(app, { name: "Films\r\nBcc: thief@example.com\r\n\r\nHello" });
    const { body } = await me.createInvitation({ email: "ed@example.com", role: "editor" });
    await app.runTask("send-mail");
    expect(smtp.mails).toMatchObject([{ to: ["ed@example.com"] }]);
    expect(linkIn(smtp.mails[0] as never)).toBe(body.url);
    const [head = ""] = (smtp.mails[0]?.text ?? "").split("\r\n\r\n");
    expect(head).not.toMatch(/^bcc:/im);
    expect(head).toMatch(/^Auto-Submitted: auto-generated/m);
  });

  test("is tried again while the server is down or defers it, and dropped where it is refused", async () => {
    let refusal: number | null = 451;
    const { app, smtp } = await start({
      onRcptTo: (_address, _session, done) =>
        done(refusal === null ? null : Object.assign(new Error("no"), { responseCode: refusal })),
    });
    const { email } = await person(app);
    await request(app, email);
    await app.runTask("send-mail");
    expect(smtp.mails).toEqual([]);
    refusal = null;
    app.advance(60_000);
    await app.runTask("send-mail");
    expect(smtp.mails).toHaveLength(1);
    refusal = 550;
    await request(app, email);
    await app.runTask("send-mail");
    refusal = null;
    app.advance(HOUR_MS / 2);
    await app.runTask("send-mail");
    expect(smtp.mails).toHaveLength(1);
    // A server that is down, until the mail is of no use any more.
    await smtp.close();
    await request(app, email);
    await app.runTask("send-mail");
    app.advance(2 * HOUR_MS);
    await app.runTask("send-mail");
    expect(await app.opened.app.db.all(sql`SELECT id FROM mails`)).toEqual([]);
  });

  test("does not delay a response, however slow the server is", async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const { app, smtp } = await start({ onConnect: (_session, done) => void held.then(() => done()) });
    const { email } = await person(app);
    const sending = (async () => {
      await request(app, email);
      await app.runTask("send-mail");
    })();
    expect((await request(app, email)).status).toBe(202);
    expect(smtp.mails).toEqual([]);
    release();
    await sending;
    await app.runTask("send-mail");
    expect(smtp.mails).toHaveLength(2);
  });

  test("needs TLS where the setting says so", async () => {
    const { app, smtp } = await start({}, "?requireTLS=true");
    const { email } = await person(app);
    await request(app, email);
    await app.runTask("send-mail");
    expect(smtp.mails).toEqual([]);
    // With STARTTLS and a certificate that the setting accepts.
    const safe = await start({ disabledCommands: [] }, "?requireTLS=true&tls.rejectUnauthorized=false");
    const other = await person(safe.app);
    await request(safe.app, other.email);
    await safe.app.runTask("send-mail");
    expect(safe.smtp.mails).toHaveLength(1);
  });

  test("needs both settings", async () => {
    await expect(testApp({ smtp_url: "smtp://127.0.0.1:1" })).rejects.toThrow(/VODBOX_SMTP_FROM/);
    await expect(testApp({ smtp_url: "http://127.0.0.1:1", smtp_from: FROM })).rejects.toThrow(/smtp/);
  });
});
