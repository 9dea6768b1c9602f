import { request } from "node:http";
import { connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { newFolder, removeFolder } from "#test/support/folder.ts";
import { type RunningServer, startServer } from "#test/support/process.ts";

/** Over a real socket, where a response can be lost: a refusal must arrive, and the server must keep running. */
const folder = newFolder();
let server: RunningServer;
let tenantId: number;
beforeAll(async () => {
  server = await startServer(folder, { env: { VODBOX_MIN_FREE_BYTES: "0" } });
  const { admin } = server;
  const tenant = await server.as({ admin }).createTenant({ name: "T", slug: "t" });
  tenantId = tenant.body.id;
});
afterAll(async () => {
  server.child.kill("SIGKILL");
  await server.ended;
  removeFolder(folder);
});

const initiate = async (bytes: number) =>
  (
    await server
      .as({ admin: server.admin })
      .initiateUpload({ tenant_id: tenantId, filename: "a.mp4", bytes_expected: bytes })
  ).body;
const inChunks = (bytes: Uint8Array<ArrayBuffer>) =>
  new Blob([bytes]).stream() as unknown as NonNullable<RequestInit["body"]>;

/** Like simple clients: the body is sent first, and the response read while writing. */
function sendPlainly(url: string, bytes: Uint8Array): Promise<number | string> {
  return new Promise((resolve) => {
    const sent = request(url, { method: "PUT" }, (answer) => {
      answer.resume().on("close", () => resolve(answer.statusCode as number));
    });
    sent.on("error", (error: NodeJS.ErrnoException) => resolve(error.code as string));
    sent.end(bytes);
  });
}

test("a body that is too large is answered 413, however it is sent, and the connection stays usable", async () => {
  const { upload_url: url, id } = await initiate(1000);
  const bytes = new Uint8Array(20_000_000);
  for (let i = 0; i < 5; i++) {
    expect((await server.call("PUT", url, { raw: bytes })).status).toBe(413);
    const chunked = await server.call("PUT", url, { raw: inChunks(bytes) });
    expect([chunked.status, chunked.body.code]).toEqual([413, "payload_too_large"]);
    expect(await sendPlainly(url, bytes)).toBe(413);
  }
  const complete = await server.as({ admin: server.admin }).completeUpload(id, { bytes_received: 1000 });
  expect(complete.error.code).toBe("bytes_mismatch");
});

test("JSON that is too large is answered 413, and 401 without a credential, in chunks or not", async () => {
  const headers = { "content-type": "application/json" };
  const bytes = new Uint8Array(8_000_000).fill(32);
  for (const raw of [() => bytes, () => inChunks(bytes)]) {
    for (let i = 0; i < 5; i++) {
      const known = await server.call("POST", "/api/v1/api_keys", { admin: server.admin, raw: raw(), headers });
      expect([known.status, known.body.code]).toEqual([413, "payload_too_large"]);
      expect((await server.call("POST", "/api/v1/api_keys", { raw: raw(), headers })).status).toBe(401);
    }
  }
});

test("connections that break at any point do no harm, and leave nothing", async () => {
  const { upload_url: url, id } = await initiate(1000);
  const { pathname, search, host } = new URL(url);
  const auth = `x-svc-admin-token: ${server.admin}`;
  const torn = [
    "GE",
    `PUT ${pathname}${search} HTTP/1.1\r\nhost: ${host}\r\ncontent-le`,
    `PUT ${pathname}${search} HTTP/1.1\r\nhost: ${host}\r\ncontent-length: 1000\r\n\r\n${"x".repeat(999)}`,
    `PUT ${pathname}${search} HTTP/1.1\r\nhost: ${host}\r\ntransfer-encoding: chunked\r\n\r\n3e8\r\n${"x".repeat(500)}`,
    `PUT ${pathname}${search} HTTP/1.1\r\nhost: ${host}\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n`,
    `PUT ${pathname}${search} HTTP/1.1\r\nhost: ${host}\r\ncontent-length: 2000\r\n\r\n${"x".repeat(1500)}`,
    `POST /api/v1/api_keys HTTP/1.1\r\nhost: ${host}\r\n${auth}\r\ncontent-length: 50\r\n\r\n{"tenant_id":`,
    `POST /api/v1/api_keys HTTP/1.1\r\nhost: ${host}\r\ncontent-length: 50\r\n\r\n{"tenant_id":`,
    `GET /docs/scalar.js HTTP/1.1\r\nhost: ${host}\r\n\r\n`,
    "\r\n\r\n\0\0\0",
  ];
  const { port } = new URL(server.base);
  await Promise.all(
    torn.flatMap((text) =>
      ["destroy", "resetAndDestroy", "end"].map(
        (how) =>
          new Promise<void>((resolve) => {
            const socket = connect(Number(port), "127.0.0.1", () => {
              socket.write(text, () => socket[how as "destroy"]());
            });
            socket.on("error", () => {}).on("close", () => resolve());
            socket.resume();
          }),
      ),
    ),
  );
  expect(server.child.exitCode).toBe(null);
  expect((await server.as().getReadiness()).status).toBe(200);
  const complete = await server.as({ admin: server.admin }).completeUpload(id, { bytes_received: 1000 });
  expect([complete.status, complete.error.code]).toEqual([422, "bytes_mismatch"]);
  expect(server.stderr()).toBe("");
});
