import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { importClient, installedClients } from "#test/support/clients.ts";
import { removeFolder } from "#test/support/folder.ts";

let folder: string;
let library: any;
let app: TestApp;
let tenantId: number;
let key: string;

beforeAll(async () => {
  [folder, app] = await Promise.all([installedClients("client"), testApp()]);
  library = await importClient(folder);
  tenantId = (await app.tenant()).id;
  key = await app.key(tenantId);
});
afterAll(async () => {
  await app?.close();
  if (folder) removeFolder(folder);
});

const ours = (request: Request) => app.opened.server.fetch(request);
/** A client whose requests reach the server in this process, through what a test puts between. */
const clientWith = (options: Record<string, unknown> = {}, between: (request: Request) => Promise<Response> = ours) =>
  new library.Vodbox({
    baseUrl: "http://vodbox.test/",
    apiKey: key,
    fetch: (url: string, init: RequestInit) => between(new Request(url, init)),
    ...options,
  });
const asset = (title: string) => ({
  tenant_id: tenantId,
  video_asset: {
    title,
    input_status: "uploaded",
    playback_status: "draft",
    source_bytes: 1,
    storage_bytes: 1,
    duration_seconds: 2,
    source_key: `tenants/${tenantId}/sources/${title}.mp4`,
    original_filename: `${title}.mp4`,
  },
});
const failure = async (work: PromiseLike<unknown>) => {
  const error: any = await Promise.resolve(work).then(
    () => expect.unreachable(),
    (reason) => reason,
  );
  return error;
};

describe("a client", () => {
  test("has a method for every operation of the document", async () => {
    const { body } = await app.call("GET", "/api/v1/openapi.json");
    const ids = Object.values(body.paths).flatMap((item: any) =>
      Object.values(item).map((each: any) => each.operationId),
    );
    expect(ids.length).toBeGreaterThan(100);
    const vodbox = clientWith();
    expect(ids.filter((id) => typeof vodbox[id] !== "function")).toEqual([]);
  });

  test("sends path, query and body, and returns the response", async () => {
    const vodbox = clientWith();
    const { asset: made } = await vodbox.createAsset({ body: asset("One") });
    expect(await vodbox.getAsset({ id: made.id })).toMatchObject({ id: made.id, title: "One" });
    await vodbox.updateAsset({ id: made.id, body: { video_asset: { title: "Two" } } });
    expect(await vodbox.listAssets({ q: "Two" })).toMatchObject([{ id: made.id, title: "Two" }]);
    const subtitle = { file: "1\n00:00:00,000 --> 00:00:01,000\nHi\n", language: "en", label: "English" };
    const added = await vodbox.createSubtitle({ video_asset_id: made.id, body: subtitle });
    expect(added).toMatchObject({ language: "en", source: "upload" });
    expect(await vodbox.exportAssets()).toMatch(/^.*title.*\r?\n.*Two/);
    const applied = await vodbox.importAssets({ body: "original_filename,title\nOne.mp4,Three\n" });
    expect(applied.applied).toMatchObject([{ asset_id: made.id, changed: ["title"] }]);
    expect(await vodbox.deleteAsset({ id: made.id })).toBe(undefined);
    expect(await failure(vodbox.getAsset({ id: made.id }))).toMatchObject({ status: 404, code: "not_found" });
  });

  test("does not let a parameter change the path", async () => {
    const vodbox = clientWith();
    for (const ref of ["..", ".", ""])
      expect((await failure(vodbox.getTenant({ ref }))).message, ref).toMatch(/parameter ref/);
    const error = await failure(
      clientWith({ apiKey: undefined, adminToken: app.admin }).getTenant({ ref: "../users?limit=1#" }),
    );
    expect([error.status, error.code]).toEqual([404, "not_found"]);
  });

  test("iterates over all pages of a list", async () => {
    const vodbox = clientWith();
    for (let n = 0; n < 7; n++) await vodbox.createAsset({ body: asset(`Page ${n}`) });
    let requests = 0;
    const counting = clientWith({}, (request) => {
      requests++;
      return ours(request);
    });
    const titles: string[] = [];
    for await (const { title } of counting.listAssets({ q: "Page", limit: 3 })) titles.push(title);
    expect([titles, requests]).toEqual([[6, 5, 4, 3, 2, 1, 0].map((n) => `Page ${n}`), 3]);
    const refused = clientWith({ apiKey: "svc_wrong" }).listAssets();
    expect(await refused.catch(({ status }: { status: number }) => status)).toBe(401);
    const [first] = await counting.listAssets({ q: "Page", limit: 3 });
    expect([first.title, requests]).toEqual(["Page 6", 4]);
    for await (const { title } of counting.listAssets({ q: "Page", limit: 3 })) if (title === "Page 5") break;
    expect(requests).toBe(5);

    const start = await counting.listAssets({ q: "Page" }).page({ limit: 4 });
    expect(start.items).toHaveLength(4);
    const rest = await counting.listAssets({ q: "Page" }).page({ limit: 100, cursor: start.cursor });
    expect([...start.items, ...rest.items].map(({ title }) => title)).toEqual(titles);
    expect(rest.cursor).toBe(null);
  });

  test("reports an error with its code, request id and details", async () => {
    const error = await failure(clientWith().initiateUpload({ body: { filename: "", bytes_expected: 5 } }));
    expect(error).toBeInstanceOf(library.VodboxError);
    expect(error).toBeInstanceOf(Error);
    expect([error.status, error.code]).toEqual([422, "validation_failed"]);
    expect(error.details.filename).toEqual([expect.any(String)]);
    expect(error.requestId).toMatch(/^req_/);
    const reader = clientWith({ apiKey: await app.key(tenantId, ["assets:read"]) });
    expect((await failure(reader.deleteAsset({ id: 1 }))).requiredScopes).toEqual(["assets:write"]);
    const page = async () => new Response("<h1>Bad gateway</h1>", { status: 502 });
    expect(await failure(clientWith({ maxRetries: 0 }, page).listAssets())).toMatchObject({
      status: 502,
      code: "http_502",
    });
  });
});

test("an upload through a proxy that limits bodies has smaller chunks", async () => {
  const sizes: number[] = [];
  const fetch = async (url: string, init: RequestInit) => {
    const size = init.body instanceof Blob ? init.body.size : 0;
    if (size > 2 ** 20) return new Response("<h1>413 Request Entity Too Large</h1>", { status: 413 });
    if (init.method === "PATCH") sizes.push(size);
    return ours(new Request(url, init));
  };
  const file = new Blob([new Uint8Array(5 * 2 ** 20)]);
  const { upload_id } = await clientWith({ fetch }).upload(file, { filename: "a.mp4" });
  expect((await clientWith().getUpload({ id: upload_id })).status).toBe("completed");
  expect(sizes).toEqual([1, 1, 1, 1, 1].map((mib) => mib * 2 ** 20));
});

describe("a retry", () => {
  test("of a creation whose response was lost creates nothing twice", async () => {
    let lost = 1;
    const vodbox = clientWith({}, async (request) => {
      const response = await ours(request);
      if (lost-- > 0) throw new TypeError("reset");
      return response;
    });
    const { asset: made } = await vodbox.createAsset({ body: asset("Once") });
    expect((await vodbox.listAssets({ q: "Once" })).map(({ id }: { id: number }) => id)).toEqual([made.id]);
  });

  test("is not made of a change that may have happened", async () => {
    let requests = 0;
    const vodbox = clientWith({}, async () => {
      requests++;
      throw new TypeError("reset");
    });
    const error = await failure(vodbox.updateAsset({ id: 1, body: { video_asset: { title: "x" } } }));
    expect([error.status, error.code, requests]).toEqual([0, "connection_failed", 1]);
  });

  test("waits as long as the server requests, within reason", async () => {
    let after = "1";
    const times: number[] = [];
    const vodbox = clientWith({}, async (request) => {
      times.push(performance.now());
      const body = JSON.stringify({ error: "Too many", code: "rate_limited", request_id: "req_1" });
      if (times.length === 1) return new Response(body, { status: 429, headers: { "retry-after": after } });
      return ours(request);
    });
    await vodbox.listAssets();
    expect(times).toHaveLength(2);
    expect((times[1] as number) - (times[0] as number)).toBeGreaterThanOrEqual(990);
    times.length = 0;
    after = "3600";
    expect(await failure(vodbox.listAssets())).toMatchObject({ code: "rate_limited", retryAfterSeconds: 3600 });
  });

  test("ends with the caller's signal, and an attempt with its timeout", async () => {
    const never = (request: Request) =>
      new Promise<Response>((_, reject) =>
        request.signal.addEventListener("abort", () => reject(request.signal.reason)),
      );
    const slow = clientWith({ maxRetries: 0 }, never);
    expect(await failure(slow.listAssets({}, { timeoutMs: 20 }))).toMatchObject({ status: 0, code: "timeout" });
    const controller = new AbortController();
    const pending = failure(slow.listAssets({}, { signal: controller.signal }));
    controller.abort(new Error("closed"));
    expect((await pending).message).toBe("closed");
    expect((await failure(slow.listAssets({}, { signal: controller.signal }))).message).toBe("closed");
  });
});
