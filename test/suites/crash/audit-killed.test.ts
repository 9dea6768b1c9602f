import { expect, test } from "vitest";
import { emptyFolder } from "#test/support/folder.ts";
import { run, startServer } from "#test/support/process.ts";

test("an acknowledged admin action is in the audit log after kill -9 right after the response", async () => {
  const dataDir = emptyFolder();
  const answered: string[] = [];
  for (let round = 1; round <= 4; round++) {
    const server = await startServer(dataDir);
    const { admin } = server;
    const slug = `t${round}`;
    const made = await server.as({ admin }).createTenant({ name: slug, slug });
    const changed = await server.as({ admin }).updateTenant(made.body.id, { name: "N" });
    const issued = await server.as({ admin }).createApiKey({ tenant_id: made.body.id });
    const last = await server.as({ admin }).rotateToken("live");
    server.child.kill("SIGKILL");
    expect((await server.ended).signal).toBe("SIGKILL");
    for (const answer of [made, changed, issued, last]) {
      expect(answer.status).toBeLessThan(300);
      answered.push(answer.headers.get("x-request-id") as string);
    }
  }
  // Without a server: from the file alone.
  const log = await run(["admin", "audit", "--data", dataDir, "--limit", "500", "--json"], {
    env: { VODBOX_ADMIN_TOKEN: "admin-token-of-the-tests", VODBOX_LOG_LEVEL: "error" },
  });
  expect(log.code).toBe(0);
  const entries = JSON.parse(log.stdout) as { request_id: string }[];
  expect(entries.map((entry) => entry.request_id).reverse()).toEqual(answered);
});
