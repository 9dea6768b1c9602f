import { Readable } from "node:stream";
import { beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { leased } from "#test/support/batches.ts";
import type { Answer } from "#test/support/client.ts";
import { muxClient } from "#test/support/mux/client.ts";

let app: TestApp;
let tenant: { id: number; slug: string };
let key: string;
beforeEach(async () => {
  app = await testApp();
  tenant = await app.tenant();
  key = await app.key(tenant.id);
});

const BYTES = 12;
const expectOk = ({ status, text }: Answer) => expect([status, status < 300 ? "" : text]).toEqual([status, ""]);
const post = async (path: string, body: unknown, options: Record<string, unknown> = {}) => {
  const answer = await app.call("POST", path, { key, body, ...options });
  expectOk(answer);
  return answer.body;
};

type Started = {
  send(raw: RequestInit["body"]): Promise<Answer>;
  /** Absent where only the end of its asset ends it. */
  abort?(): Promise<Answer>;
  cancel?(): Promise<Answer>;
  assetId?: number;
};
const fields = { filename: "a.mp4", bytes_expected: BYTES };

/** `sent`: bytes of it that have arrived. */
async function muxUpload(sent: number): Promise<Started> {
  const uploads = muxClient(app, key).video.uploads;
  const { id, url = "" } = await uploads.create({ cors_origin: "*", new_asset_settings: {} });
  const chunk = (raw: RequestInit["body"], from: number, to: number) =>
    app.call("PUT", url, { raw, headers: { "content-range": `bytes ${from}-${to - 1}/${BYTES}` } });
  if (sent > 0) expect((await chunk("a".repeat(sent), 0, sent)).status).toBe(308);
  const [asset] = (await app.as(key).listAssets()).body;
  return {
    send: (raw) => (sent > 0 && typeof raw === "string" ? chunk(raw.slice(sent), sent, BYTES) : chunk(raw, 0, BYTES)),
    cancel: async () => {
      await uploads.cancel(id);
      return { status: 200, text: "" } as Answer;
    },
    assetId: asset?.id,
  };
}

/** Every kind of request that carries the bytes of an upload. */
const KINDS: Record<string, () => Promise<Started>> = {
  "direct PUT": async () => {
    const { asset_id, upload_url, upload_headers: headers } = await post("/api/v1/uploads/initiate", fields);
    return {
      send: (raw) => app.call("PUT", upload_url, { raw, headers }),
      assetId: asset_id,
    };
  },
  "resumable PUT": async () => {
    const { asset_id, upload_url, upload_headers } = await post("/api/v1/uploads/initiate", fields);
    const headers = { ...upload_headers, "content-range": `bytes 0-${BYTES - 1}/${BYTES}` };
    return {
      send: (raw) => app.call("PUT", upload_url, { raw, headers }),
      assetId: asset_id,
    };
  },
  "part of a multipart upload": async () => {
    const { id, asset_id } = await post("/api/v1/uploads/initiate_multipart", fields);
    const { url, headers } = await post(`/api/v1/uploads/${id}/sign_part`, { part_number: 1 });
    return {
      send: (raw) => app.call("PUT", url, { raw, headers }),
      abort: () => app.as(key).abortMultipartUpload(id, {}),
      assetId: asset_id,
    };
  },
  tus: async () => {
    const headers = { "tus-resumable": "1.0.0" };
    const created = await app.call("POST", "/api/v1/uploads/tus", {
      key,
      headers: { ...headers, "upload-length": String(BYTES) },
    });
    expectOk(created);
    const location = created.headers.get("location") as string;
    const patch = { ...headers, "upload-offset": "0", "content-type": "application/offset+octet-stream" };
    return {
      send: (raw) => app.call("PATCH", location, { key, raw, headers: patch }),
      abort: () => app.call("DELETE", location, { key, headers }),
      assetId: Number(created.headers.get("x-svc-asset-id")),
    };
  },
  "direct upload of Mux's API": () => muxUpload(0),
  "direct upload of Mux's API, begun": () => muxUpload(BYTES / 2),
  "object of a batch": async () => {
    const batch = await leased(app, key);
    const { body } = await batch.want("a.m4s", "a".repeat(BYTES));
    const { upload_url, upload_headers: headers } = body;
    return {
      send: (raw) => app.call("PUT", upload_url, { raw, headers }),
      abort: () => batch.ask("DELETE", `/uploads/${body.id}`),
      cancel: () => batch.ask("POST", "/cancel", { body: {} }),
    };
  },
  "part of an object of a batch": async () => {
    const batch = await leased(app, key);
    const { body } = await batch.want("a.m4s", "a".repeat(BYTES), { mode: "multipart" });
    const signed = await batch.ask("POST", `/uploads/${body.id}/parts`, { body: { part_number: 1 } });
    expectOk(signed);
    return {
      send: (raw) => app.call("PUT", signed.body.url, { raw, headers: signed.body.headers }),
      abort: () => batch.ask("DELETE", `/uploads/${body.id}`),
      cancel: () => batch.ask("POST", "/cancel", { body: {} }),
    };
  },
};

const ENDS: Record<string, (started: Started) => Promise<unknown>> = {
  aborted: async ({ abort }) => expectOk((await abort?.()) as Answer),
  canceled: async ({ cancel }) => expectOk((await cancel?.()) as Answer),
  "of a deleted asset": async ({ assetId }) => expectOk(await app.as(key).deleteAsset(assetId)),
  "of a deleted tenant": async () => {
    expectOk(await app.as({ admin: app.admin }).deleteTenant(tenant.id, { confirm: tenant.slug }));
    await app.runTask("delete-tenants");
  },
  "of a suspended tenant": async () =>
    expectOk(await app.as({ admin: app.admin }).updateTenant(tenant.id, { status: "suspended" })),
  "past its time, not swept yet": async () => app.advance(8 * 86_400_000),
  "expired and swept": async () => {
    app.advance(8 * 86_400_000);
    await app.runTask("expire-uploads");
    await app.runTask("expire-batches");
  },
};

const rows = Object.keys(KINDS).flatMap((kind) =>
  Object.keys(ENDS)
    .filter((end) => {
      // The asset of a direct upload is created with its first byte.
      if (kind.includes("Mux")) return end !== "aborted" && (end !== "of a deleted asset" || kind.endsWith("begun"));
      if (end === "aborted") return !/^(direct|resumable)/.test(kind);
      return kind.includes("batch") ? end !== "of a deleted asset" : end !== "canceled";
    })
    .map((end) => [kind, end] as const),
);

async function stored(): Promise<string[]> {
  const objects = app.opened.app.objects as NonNullable<typeof app.opened.app.objects>;
  const found = (await objects.list("tenants/")).objects.map(({ key: name }) => name);
  return found;
}
const refused = ({ status, text }: Answer, kind: string) =>
  // A tus upload is a resource of the API: 410 is what tus says, and a key of a suspended or deleted tenant is 401.
  expect(kind === "tus" ? [401, 403, 404, 410] : [403, 404], text).toContain(status);

describe("an upload URL stores nothing once its upload, asset or tenant has ended", () => {
  test.each(rows)("%s: %s", async (kind, end) => {
    const started = await (KINDS[kind] as () => Promise<Started>)();
    await (ENDS[end] as (started: Started) => Promise<unknown>)(started);
    refused(await started.send("a".repeat(BYTES)), kind);
    expect(await stored()).toEqual([]);
  });

  test.each(rows)("%s, in progress: %s", async (kind, end) => {
    const started = await (KINDS[kind] as () => Promise<Started>)();
    let release = (_: string) => {};
    const rest = new Promise<string>((resolve) => {
      release = resolve;
    });
    let began = () => {};
    const beginning = new Promise<void>((resolve) => {
      began = resolve;
    });
    const body = async function* () {
      yield Buffer.from("aaaaa");
      began();
      yield Buffer.from(await rest);
    };
    const sent = started.send(Readable.toWeb(Readable.from(body())) as unknown as RequestInit["body"]);
    await beginning;
    const ended = (ENDS[end] as (started: Started) => Promise<unknown>)(started);
    // An end that waits for the writer lets it finish first.
    await Promise.race([ended, sent]);
    release("a".repeat(BYTES - 5));
    await ended;
    refused(await sent, kind);
    expect(await stored()).toEqual([]);
    if (["of a suspended tenant", "past its time, not swept yet"].includes(end)) return;
    const parts = async () => {
      const found: string[] = [];
      for await (const { key: name } of app.opened.app.objects?.listMultiparts("tenants/") ?? []) found.push(name);
      return found;
    };
    await expect.poll(parts).toEqual([]);
  });
});
