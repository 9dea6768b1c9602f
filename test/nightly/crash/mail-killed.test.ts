import { expect, test } from "vitest";
import { emptyFolder } from "#test/support/folder.ts";
import { startServer } from "#test/support/process.ts";
import { startSmtp } from "#test/support/smtp.ts";

test("a password reset that was answered is mailed after kill -9, once the mail server is back", async () => {
  const dataDir = emptyFolder();
  // A port that is free again.
  const gone = await startSmtp();
  await gone.close();
  const env = { VODBOX_SMTP_URL: gone.url, VODBOX_SMTP_FROM: "films@example.com" };
  const server = await startServer(dataDir, { env });
  const { admin } = server;
  const tenant = await server.as({ admin }).createTenant({ name: "T", slug: "t" });
  const email = "ann@example.com";
  const body = { tenant_id: tenant.body.id, email, role: "admin", password: "correct horse" };
  expect((await server.as({ admin }).createTenantUser(body)).status).toBe(201);
  const invite = { tenant_id: tenant.body.id, email: "ed@example.com", role: "editor" };
  const invited = await server.as({ admin }).createInvitation(invite);
  const asked = await server.as().requestPasswordReset({ email });
  server.child.kill("SIGKILL");
  expect((await server.ended).signal).toBe("SIGKILL");
  expect([invited.status, asked.status]).toEqual([201, 202]);

  const smtp = await startSmtp({}, gone.port);
  const again = await startServer(dataDir, { env });
  await expect
    .poll(() => smtp.mails.flatMap(({ to }) => to).toSorted(), { timeout: 180_000 })
    .toEqual([email, "ed@example.com"]);
  again.child.kill("SIGTERM");
  await again.ended;
  await smtp.close();
});
