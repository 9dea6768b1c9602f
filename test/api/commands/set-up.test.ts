import { join } from "node:path";
import { expect, test } from "vitest";
import { emptyFolder } from "#test/support/folder.ts";
import { lineOf, startServer } from "#test/support/process.ts";

test.each([
  ["one process", []],
  ["several processes", ["--processes", "2"]],
])("%s of an empty server print one address that sets it up, until there is a tenant", async (_, args) => {
  const dataDir = join(emptyFolder(), "data");
  const server = await startServer(dataDir, { args });
  const [, address = ""] = await lineOf(server, /^set up in a browser, once, within an hour: (\S+)$/m);
  expect(address).toMatch(new RegExp(`^${server.base}/console/setup\\?code=\\w{32}$`));
  expect(server.stdout().split("set up in a browser")).toHaveLength(2);
  const code = new URL(address).searchParams.get("code") as string;
  const body = { code, name: "Acme", email: "ann@example.com", password: "long enough" };
  expect((await server.as().setUpServer(body)).status).toBe(201);
  expect((await server.as().setUpServer(body)).status).toBe(401);
  server.child.kill("SIGKILL");
  await server.ended;
  expect(server.stderr()).not.toContain(code);
  const again = await startServer(dataDir, { args });
  await lineOf(again, /^listening on \S+$/m);
  again.child.kill("SIGTERM");
  expect((await again.ended).stdout).not.toContain("set up");
});
