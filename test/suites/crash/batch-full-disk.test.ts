import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { leased } from "#test/support/batches.ts";
import { expectError } from "#test/support/error.ts";
import { startServer, stopCleanly } from "#test/support/process.ts";
import { smallDisk } from "#test/support/storage/small-disk.ts";

const BYTES = 4 * 2 ** 20;
const body = new Uint8Array(BYTES).fill(7);
const filesUnder = (folder: string): string[] =>
  existsSync(folder)
    ? readdirSync(folder, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) => join(entry.parentPath, entry.name))
    : [];

test("a full disk stores nothing of a batch, by any way, and with space each continues", async (context) => {
  const disk = smallDisk(context, 40);
  const dataDir = join(disk.path, "data");
  mkdirSync(dataDir);
  const server = await startServer(dataDir, { env: { VODBOX_MIN_FREE_BYTES: "0" } });
  const { admin } = server;
  const tenant = await server.as({ admin }).createTenant({ name: "Full", slug: "full" });
  const scopes = ["assets:read", "assets:write"];
  const issued = await server.as({ admin }).createApiKey({ tenant_id: tenant.body.id, scopes });
  const batch = await leased(server, issued.body.token);
  const batchUpload = async (mode: string) => {
    const { body: made } = await batch.want(mode, body, { mode: mode === "in parts" ? "proxy" : mode });
    return { ...made, at: `/uploads/${made.id}` };
  };
  const [put, proxy, inParts, multipart] = await Promise.all(
    ["put", "proxy", "in parts", "multipart"].map(batchUpload),
  );
  const part = await batch.ask("POST", `${multipart.at}/parts`, { body: { part_number: 1 } });
  const raw = { raw: body };
  const ways = {
    put: () => server.call("PUT", put.upload_url, { ...raw, headers: put.upload_headers }),
    proxy: () => batch.ask("PUT", `${proxy.at}/proxy`, raw),
    "in parts": () => batch.ask("PUT", `${inParts.at}/proxy_parts/1`, raw),
    multipart: () => server.call("PUT", part.body.url, raw),
  };
  const before = filesUnder(join(dataDir, "objects"));
  disk.fill();
  for (const [name, send] of Object.entries(ways)) {
    expectError(await send(), 507, "storage_full", name);
    expect(filesUnder(join(dataDir, "objects")), name).toEqual(before);
  }
  const listed = await batch.ask("GET", "/uploads");
  expect(listed.body).toMatchObject(Array(4).fill({ status: "pending", bytes_received: 0 }));
  expect((await server.as().getHealth()).status).toBe(200);

  rmSync(join(disk.path, "filler"));
  for (const [name, send] of Object.entries(ways)) expect(await send(), name).toMatchObject({ status: 200 });
  const ending = { body: { bytes_received: BYTES } };
  expect(await batch.ask("POST", `${put.at}/complete`, ending)).toMatchObject({ status: 200 });
  expect(await batch.ask("POST", `${multipart.at}/complete`, ending)).toMatchObject({ status: 200 });
  const joined = { body: { part_count: 1, bytes_received: BYTES } };
  expect(await batch.ask("POST", `${inParts.at}/proxy_complete`, joined)).toMatchObject({ status: 200 });
  expect((await batch.ask("GET", "/uploads")).body).toMatchObject(
    Array(4).fill({ status: "completed", bytes_received: BYTES }),
  );
  await stopCleanly(server);
});
