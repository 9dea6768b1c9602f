import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { newFolder, removeFolder } from "#test/support/folder.ts";
import { nightly } from "#test/support/nightly.ts";
import { type RunningServer, startServer } from "#test/support/process.ts";

const folders: string[] = [];
async function started(seconds: string): Promise<RunningServer & { key: string; tenantId: number }> {
  const folder = newFolder();
  folders.push(folder);
  const server = await startServer(folder, { env: { VODBOX_BODY_IDLE_SECONDS: seconds } });
  const { admin } = server;
  const tenant = await server.as({ admin }).createTenant({ name: "T", slug: "t" });
  const body = { tenant_id: tenant.body.id, scopes: ["assets:read", "assets:write"] };
  const { token } = (await server.as({ admin }).createApiKey(body)).body;
  return { ...server, key: token, tenantId: tenant.body.id };
}
let quick: Awaited<ReturnType<typeof started>>;
/** A limit that a client keeps on a busy machine too, when it sends a byte each second. */
let patient: Awaited<ReturnType<typeof started>>;
let usual: Awaited<ReturnType<typeof started>>;
beforeAll(async () => {
  [quick, patient, usual] = await Promise.all([started("1"), started("5"), started("60")]);
});
afterAll(async () => {
  for (const server of [quick, patient, usual]) {
    server.child.kill("SIGKILL");
    await server.ended;
  }
  for (const folder of folders) removeFolder(folder);
});

type Sent = { head: string; body?: string; trickle?: { bytes: number; everyMs: number } };
/** Sends a header and part of a body; returns the response and the time until the connection was closed. */
function sent({ base }: RunningServer, { head, body = "", trickle }: Sent) {
  const { hostname, port } = new URL(base);
  return new Promise<{ text: string; afterMs: number }>((resolve) => {
    const from = performance.now();
    let text = "";
    const socket = connect(Number(port), hostname, async () => {
      socket.write(`${head}\r\nhost: x\r\n\r\n${body}`);
      for (let left = trickle?.bytes ?? 0; left > 0 && !socket.destroyed; left--) {
        await sleep(trickle?.everyMs);
        socket.write("x");
      }
    });
    socket.on("data", (chunk) => {
      text += chunk;
      // A complete response on a connection that stays open: nothing more is needed.
      if (trickle && /\r\n\r\n/.test(text)) socket.destroy();
    });
    socket.on("error", () => {});
    socket.on("close", () => resolve({ text, afterMs: performance.now() - from }));
  });
}

async function requests(server: typeof quick): Promise<Record<string, string>> {
  const { as, call, key } = server;
  const auth = `x-api-key: ${key}`;
  const fields = { filename: "a.mp4", bytes_expected: 1000 };
  const { body: put } = await as(key).initiateUpload(fields);
  const { body: parts } = await as(key).initiateMultipartUpload(fields);
  const { body: part } = await as(key).signUploadPart(parts.id, { part_number: 1 });
  const made = await call("POST", "/api/v1/uploads/tus", {
    key,
    headers: { "tus-resumable": "1.0.0", "upload-length": "1000" },
  });
  const path = (url: string) => url.replace(server.base, "");
  const form = "content-type: multipart/form-data; boundary=b";
  const subtitles = `/api/v1/assets/${put.asset_id}/subtitles`;
  const tus = "tus-resumable: 1.0.0\r\nupload-offset: 0\r\ncontent-type: application/offset+octet-stream";
  return {
    "JSON with a key": `POST /api/v1/uploads/initiate HTTP/1.1\r\n${auth}`,
    "JSON with the admin token": `POST /api/v1/admin/tenants HTTP/1.1\r\nx-svc-admin-token: ${server.admin}`,
    "JSON without a credential": "POST /api/v1/device_tokens HTTP/1.1",
    "a beacon": "POST /api/v1/playback_events HTTP/1.1",
    "a payment notice": "POST /api/v1/billing/webhook HTTP/1.1",
    "a form": `POST ${subtitles} HTTP/1.1\r\n${auth}\r\n${form}`,
    "an import as a form": `POST /api/v1/assets/import HTTP/1.1\r\n${auth}\r\n${form}`,
    "an import": `POST /api/v1/assets/import HTTP/1.1\r\n${auth}\r\ncontent-type: text/csv`,
    "a PUT": `PUT ${path(put.upload_url)} HTTP/1.1`,
    "a chunk": `PUT ${path(put.upload_url)} HTTP/1.1\r\ncontent-range: bytes 0-999/1000`,
    "a part": `PUT ${path(part.url)} HTTP/1.1`,
    tus: `PATCH ${path(made.headers.get("location") as string)} HTTP/1.1\r\n${auth}\r\n${tus}`,
    "no route": "POST /nowhere HTTP/1.1",
    "no method": "POST /api/v1/openapi.json HTTP/1.1",
    "a GET": "GET /healthz HTTP/1.1",
    "a page": "GET /docs HTTP/1.1",
  };
}

describe("a stalled body", () => {
  test("closes its connection after the setting's time, regardless of who reads it", async () => {
    const heads = Object.entries(await requests(quick));
    const found = await Promise.all(
      heads.flatMap(([name, head]) =>
        [
          ["content-length: 1000", ""],
          ["content-length: 1000", '{"filename"'],
          ["transfer-encoding: chunked", 'b\r\n{"filename"\r\n'],
        ].map(async ([framing, body]) => ({
          name: `${name}, ${framing}, ${body?.length} bytes`,
          ...(await sent(quick, { head: `${head}\r\n${framing}`, body })),
        })),
      ),
    );
    for (const { name, afterMs } of found) {
      expect.soft(afterMs, name).toBeGreaterThan(900);
      // Node.js would close it after minutes. The rest of a refused request is read for five seconds.
      expect.soft(afterMs, name).toBeLessThan(30_000);
    }
    expect((await quick.as().getReadiness()).status).toBe(200);
    expect(quick.stderr()).toBe("");
  });

  test("a slow and steady body, or a complete one, is not closed", async () => {
    const { body: put } = await patient.as(patient.key).initiateUpload({ filename: "a.mp4", bytes_expected: 8 });
    const head = `PUT ${put.upload_url.replace(patient.base, "")} HTTP/1.1\r\ncontent-length: 8`;
    const { text, afterMs } = await sent(patient, { head, trickle: { bytes: 8, everyMs: 1000 } });
    expect(text).toMatch(/^HTTP\/1.1 200 /);
    expect(afterMs).toBeGreaterThan(6000);
    const waited = await quick
      .as({ worker: quick.worker, headers: { "idempotency-key": "waits" } })
      .claimJob({ wait_seconds: 3 });
    expect(waited.status).toBe(204);
  });

  nightly("is closed after 20 s on routes without a credential, and not on others", async () => {
    const all = await requests(usual);
    const framing = "content-length: 1000";
    const open = ["JSON without a credential", "a beacon", "no route", "a GET"];
    const given = ["JSON with a key", "a form", "a PUT", "tus"];
    let closed = 0;
    const still = given.map((name) =>
      sent(usual, { head: `${all[name]}\r\n${framing}`, body: "{" }).then(() => closed++),
    );
    const found = await Promise.all(open.map((name) => sent(usual, { head: `${all[name]}\r\n${framing}`, body: "{" })));
    for (const [at, { afterMs }] of found.entries()) {
      expect.soft(afterMs, open[at]).toBeGreaterThan(19_500);
      expect.soft(afterMs, open[at]).toBeLessThan(55_000);
    }
    // The setting is a minute, so these were closed before it, and the others were not.
    expect(closed).toBe(0);
    void still;
  });
});
