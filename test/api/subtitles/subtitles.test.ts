import { beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { callback, next, putArtifacts, readyAsset, uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { subtitled, subtitleForm, VTT } from "#test/support/subtitles.ts";

let app: TestApp;
let key: string;
let asset: any;
beforeEach(async () => {
  app = await testApp();
  key = await app.key((await app.tenant()).id);
  asset = (await uploaded(app, key)).asset;
  await app.newEvents();
});
const at = (rest = "", id = asset.id) => `/api/v1/assets/${id}/subtitles${rest}`;
const post = (...form: Parameters<typeof subtitleForm>) => app.as(key).createSubtitle(asset.id, subtitleForm(...form));
const patch = (id: number, body: unknown, method = "PATCH") => app.call(method, at(`/${id}`), { key, body });
const list = async (query = "") => (await app.call("GET", at(query), { key })).body;
const content = async (id: number) => (await app.as(key).getSubtitle(asset.id, id)).body.content;
/** Keys of the texts in storage. */
const texts = async () =>
  (await app.opened.app.objects?.list(`tenants/${asset.tenant_id}/assets/${asset.id}/subtitles/`))?.objects.map(
    (one) => one.key,
  );
const sweep = async () => {
  app.advance(3_600_001);
  await app.runTask("sweep-objects");
};
const bytesOf = async () => {
  const [tenant] = (await app.as(key).listTenants()).body;
  const { body } = await app.as(key).getAsset(asset.id);
  return { tenant: tenant.storage_bytes, asset: body.storage_bytes };
};

describe("the tracks of an asset", () => {
  test("are listed by position, then language, with their contents on request", async () => {
    for (const [language, position] of [
      ["fr", "1"],
      ["de", "1"],
      ["it", "0"],
      ["en", "2"],
    ])
      await subtitled(
        app,
        key,
        asset.id,
        { language: language as string, position: position as string },
        VTT.replace("Hello", language as string),
      );
    const order = ["it", "de", "fr", "en"];
    expect((await list()).map((one: any) => one.language)).toEqual(order);
    expect((await list())[0]).not.toHaveProperty("content");
    const whole = await app.as(key).listSubtitles(asset.id, { include: "content" });
    expect(whole.headers.get("content-type")).toMatch("application/json");
    expect(whole.body.map((one) => one.content)).toEqual(order.map((language) => VTT.replace("Hello", language)));
    expectError(await app.as(key).listSubtitles(asset.id, { include: "nothing" }), 422, "validation_failed");

    const seen: string[] = [];
    for (let path: string | undefined = at("?limit=3&include=content"); path; ) {
      const page = await app.call("GET", path, { key });
      seen.push(...page.body.map((one: any) => one.language));
      path = /<([^>]+)>; rel="next"/.exec(page.headers.get("link") ?? "")?.[1];
    }
    expect(seen).toEqual(order);
    expectError(await app.as(key).listSubtitles(asset.id, { cursor: "x" }), 422, "validation_failed");
  });

  test("have different languages", async () => {
    const en = await subtitled(app, key, asset.id);
    const de = await subtitled(app, key, asset.id, { language: "de" });
    await app.newEvents();
    expectError(await post({ language: "EN" }), 422, "language_taken");
    expectError(await patch(de.id, { language: "en" }), 422, "language_taken");
    expect((await patch(en.id, { language: "EN" })).body.language).toBe("en");
    expect((await patch(en.id, { language: "pt-br" })).body.language).toBe("pt-BR");
    expect((await patch(de.id, { language: "en" })).body.language).toBe("en");
    expectError(await patch(de.id, { language: "english" }), 422, "invalid_language");
    expect(await app.newEvents()).toEqual([]);
  });

  test("are at most twenty, also with concurrent requests, and one per language", async () => {
    const languages = "af ar bg bn ca cs da de el en es et fa fi fr he hi hr hu id is it ja ko lt".split(" ");
    const answers = await Promise.all([...languages, ...languages].map((language) => post({ language })));
    expect(answers.filter(({ status }) => status === 201)).toHaveLength(20);
    const refused = answers.filter(({ status }) => status !== 201);
    expect(new Set(refused.map(({ error }) => error.code))).toEqual(
      new Set(["subtitle_limit_reached", "language_taken"]),
    );
    const tracks = await list();
    expect(new Set(tracks.map((one: any) => one.language)).size).toBe(20);
    expect((await app.newEvents()).map(({ data }) => data.subtitle_id).sort()).toEqual(
      tracks.map((one: any) => one.id).sort(),
    );
    expectError(await post({ language: "zu" }), 422, "subtitle_limit_reached");
    await sweep();
    expect(await texts()).toHaveLength(20);
    await app.as(key).deleteSubtitle(asset.id, tracks[0].id);
    expect((await post({ language: "zu" })).status).toBe(201);
  });

  test("have at most one default: the last one set", async () => {
    const one = await subtitled(app, key, asset.id, { is_default: "true" });
    const two = await subtitled(app, key, asset.id, { language: "de", is_default: "1" });
    const defaults = async () => (await list()).filter((track: any) => track.is_default).map((track: any) => track.id);
    expect(await defaults()).toEqual([two.id]);
    expect((await patch(one.id, { is_default: true })).body.is_default).toBe(true);
    expect(await defaults()).toEqual([one.id]);
    await patch(one.id, { is_default: false });
    expect(await defaults()).toEqual([]);
  });
});

describe("a change", () => {
  test("sets the given fields, by PATCH and PUT, and emits no event", async () => {
    const made = await subtitled(app, key, asset.id);
    await app.newEvents();
    const changed = await patch(made.id, { label: "Englisch", position: 7 });
    expect(changed.body).toMatchObject({
      id: made.id,
      label: "Englisch",
      position: 7,
      language: "en",
      bytes: made.bytes,
    });
    expect(changed.body).not.toHaveProperty("content");
    const text = "00:01.000 --> 00:02.000\nÄ";
    const rewritten = await patch(made.id, { content: text }, "PUT");
    expect(rewritten.body).toMatchObject({ id: made.id, label: "Englisch", bytes: Buffer.byteLength(text) + 8 });
    expect(await content(made.id)).toBe(`WEBVTT\n\n${text}`);
    expect((await patch(made.id, {})).body.label).toBe("Englisch");
    expect(await app.newEvents()).toEqual([]);
    await sweep();
    expect(await texts()).toHaveLength(1);
    expect(await content(made.id)).toBe(`WEBVTT\n\n${text}`);
  });

  test("with invalid values changes nothing", async () => {
    const made = await subtitled(app, key, asset.id);
    for (const [body, code] of [
      [{ label: "x", content: "WEBVTT\n\n00:02.000 --> 00:01.000\nHi" }, "invalid_subtitle"],
      [{ label: "x", content: "" }, "invalid_subtitle"],
      [{ label: "x", content: `${VTT}a\0b` }, "invalid_subtitle"],
      [{ label: "x", content: `${VTT}\ud800` }, "invalid_subtitle"],
      [{ label: "x", content: VTT + "ä".repeat(1_000_000) }, "invalid_subtitle"],
      [{ label: "x", content: 5 }, "validation_failed"],
      [{ label: "x", language: "" }, "invalid_language"],
      [{ label: "" }, "validation_failed"],
      [{ label: "x", position: 1.5 }, "validation_failed"],
      [{ label: "x", position: -1 }, "validation_failed"],
      [{ label: "x", is_default: "yes" }, "validation_failed"],
      [{ label: null }, "validation_failed"],
    ] as const)
      expectError(await patch(made.id, body), 422, code, JSON.stringify(body).slice(0, 80));
    const bad = await patch(made.id, { content: "hello\n\n00:01.000 --> 00:02.000\nHi" });
    expect(bad.body.details).toEqual({ content: ['line 1: "hello" has no timing line below it'] });
    expectError(
      await app.call("PATCH", at(`/${made.id}`), { key, raw: "{", headers: { "content-type": "application/json" } }),
      400,
      "invalid_json",
    );
    expect(await app.as(key).getSubtitle(asset.id, made.id)).toMatchObject({
      body: { label: "English", content: VTT },
    });
    expect(await texts()).toHaveLength(1);
  });

  test("accepts 2 MB, however they are escaped", async () => {
    const made = await subtitled(app, key, asset.id);
    const text = VTT + "ж".repeat((2_000_000 - VTT.length) / 2);
    const escaped = JSON.stringify({ content: text }).replaceAll("ж", "\\u0436");
    const sent = await app.call("PATCH", at(`/${made.id}`), {
      key,
      raw: escaped,
      headers: { "content-type": "application/json" },
    });
    expect([sent.status, sent.body.bytes]).toEqual([200, Buffer.byteLength(text)]);
    expect(await content(made.id)).toBe(text);
    expectError(await patch(made.id, { content: "x".repeat(6_100_000) }), 413, "payload_too_large");
  });
});

test("a deleted track is gone, with its text and its bytes", async () => {
  const before = await bytesOf();
  const one = await subtitled(app, key, asset.id);
  const two = await subtitled(app, key, asset.id, { language: "de" });
  await app.newEvents();
  expect(await app.as(key).deleteSubtitle(asset.id, one.id)).toMatchObject({ status: 204, text: "" });
  for (const method of ["GET", "DELETE"])
    expectError(await app.call(method, at(`/${one.id}`), { key }), 404, "not_found");
  expectError(await patch(one.id, { label: "x" }), 404, "not_found");
  expect((await list()).map((track: any) => track.id)).toEqual([two.id]);
  expect(await app.newEvents()).toEqual([]);
  await sweep();
  expect(await texts()).toHaveLength(1);
  expect(await bytesOf()).toEqual({ tenant: before.tenant + two.bytes, asset: before.asset + two.bytes });
});

test("a track is found only on its own asset", async () => {
  const made = await subtitled(app, key, asset.id);
  const { asset: second } = await uploaded(app, key);
  for (const method of ["GET", "PATCH", "DELETE"])
    expectError(
      await app.call(method, at(`/${made.id}`, second.id), { key, ...(method === "PATCH" && { body: {} }) }),
      404,
      "not_found",
    );
  for (const id of ["0", "x", "1e3", "99999999999999999999"])
    expectError(await app.as(key).getSubtitle(asset.id, id), 404, "not_found");
});

describe("storage of texts", () => {
  test("counts for asset and tenant, through replacement, the upload's completion and encoding", async () => {
    const { body: pending } = await app.as(key).initiateUpload({ filename: "x.mp4", bytes_expected: 4 });
    const id = pending.asset_id;
    const early = await subtitled(app, key, id);
    await app.call("PUT", pending.upload_url, { raw: "abcd" });
    await app.as(key).completeUpload(pending.id, { bytes_received: 4 });
    const held = async () => (await app.as(key).getAsset(id)).body.storage_bytes;
    expect(await held()).toBe(4 + early.bytes);
    const longer = VTT.replace("Hello", "Hello, hello");
    await app.as(key).updateSubtitle(id, early.id, { content: longer });
    expect(await held()).toBe(4 + longer.length);
    let contract = (await next(app)).body;
    if (contract.job.asset_id !== id) contract = (await next(app)).body;
    await callback(app, contract, "complete", await putArtifacts(app, contract));
    const artifacts =
      (await app.opened.app.objects?.list(contract.outputs.prefix))?.objects.reduce((sum, one) => sum + one.bytes, 0) ??
      0;
    expect(await held()).toBe(4 + longer.length + artifacts);
    const [tenant] = (await app.as(key).listTenants()).body;
    expect(tenant.storage_bytes).toBe((await held()) + asset.source_bytes);
    await app.as(key).deleteAsset(id);
    expect(await bytesOf()).toEqual({ tenant: asset.source_bytes, asset: asset.source_bytes });
    expect((await app.opened.app.objects?.list(`tenants/${asset.tenant_id}/assets/${id}/`))?.objects).toEqual([]);
  });
});

describe("in players", () => {
  test("a public asset's tracks are available to everyone, also before it is ready", async () => {
    const { asset: open } = await uploaded(app, key, { playback_policy: "public" });
    const made = await subtitled(app, key, open.id);
    expect(made.url).toBe(`http://vodbox.test/media/${open.external_id}/subtitles/${made.id}.vtt`);
    const got = await app.call("GET", made.url);
    expect([got.status, got.text]).toEqual([200, VTT]);
    expect(Object.fromEntries(got.headers)).toMatchObject({
      "content-type": "text/vtt; charset=utf-8",
      "access-control-allow-origin": "*",
      "cache-control": "public, no-cache",
      etag: expect.stringMatching(/^"/),
    });
    const etag = got.headers.get("etag") as string;
    expect((await app.call("GET", made.url, { headers: { "if-none-match": etag } })).status).toBe(304);
    await app.as(key).updateSubtitle(open.id, made.id, { content: VTT.replace("Hello", "Changed") });
    const changed = await app.call("GET", made.url, { headers: { "if-none-match": etag } });
    expect([changed.status, changed.text]).toEqual([200, VTT.replace("Hello", "Changed")]);
    for (const file of ["subtitles/999.vtt", `subtitles/${made.id}`, `subtitles/0${made.id}.vtt`, "subtitles/../x.vtt"])
      expect((await app.call("GET", `/media/${open.external_id}/${file}`)).status).toBe(404);
    await app.as(key).deleteSubtitle(open.id, made.id);
    expect((await app.call("GET", made.url)).status).toBe(404);
  });

  test("a signed asset's need a token; the record's own URL covers only the text", async () => {
    await next(app);
    const { asset: signed } = await readyAsset(app, key, { playback_policy: "signed" });
    const made = await subtitled(app, key, signed.id, { is_default: "true" });
    await subtitled(app, key, signed.id, { language: "de", label: "Deutsch", position: "1" });
    const plain = `/media/${signed.external_id}/subtitles/${made.id}.vtt`;
    expectError(await app.call("GET", plain), 403, "playback_token_required");
    expectError(await app.call("GET", `${plain}?token=x`), 403, "playback_token_invalid");
    const { body } = await app.as(key).getPlayback(signed.id);
    expect(body.subtitles.map(({ language, label }) => [language, label])).toEqual([
      ["en", "English"],
      ["de", "Deutsch"],
    ]);
    for (const { url } of body.subtitles) expect(await app.call("GET", url)).toMatchObject({ status: 200, text: VTT });
    const inPath = plain.replace("/subtitles/", `/~${body.token}/subtitles/`);
    expect((await app.call("GET", inPath)).headers.get("cache-control")).toBe("private, no-cache");

    const got = await app.call("GET", made.url);
    expect([got.status, got.text, got.headers.get("content-type")]).toEqual([200, VTT, "text/vtt; charset=utf-8"]);
    expect(got.headers.get("access-control-allow-origin")).toBe("*");
    expect(made.url).not.toContain(body.token.split(".")[0]);
    app.advance(3_601_000);
    expectError(await app.call("GET", made.url), 403, "address_expired");
    const { asset: other } = await readyAsset(app, key, { playback_policy: "public" });
    expect((await app.call("GET", `/media/${other.external_id}/subtitles/${made.id}.vtt`)).status).toBe(404);
  });

  test("the player's data list them, with the default one selected, and the page contains none of their text", async () => {
    await next(app);
    const { asset: open } = await readyAsset(app, key, { playback_policy: "public" });
    const evil = await subtitled(app, key, open.id, { label: `"><script>` });
    const made = await subtitled(app, key, open.id, { language: "de", label: "Deutsch", is_default: "true" });
    const url = (id: number) => `/media/${open.external_id}/subtitles/${id}.vtt`;
    expect((await app.call("GET", `/embed/${open.external_id}/player.json`)).body.subtitles).toEqual([
      { language: "de", label: "Deutsch", url: url(made.id), is_default: true, role: "subtitle" },
      { language: "en", label: `"><script>`, url: url(evil.id), is_default: false, role: "subtitle" },
    ]);
    for (const page of ["watch", "embed"])
      expect((await app.call("GET", `/${page}/${open.external_id}`)).text).not.toContain(`"><script>`);
  });
});

test("without storage tracks can be listed, and nothing else", async () => {
  const folder = emptyFolder();
  const first = await testApp({}, folder);
  const tenant = await first.tenant();
  const theirs = await first.key(tenant.id);
  const { asset: made } = await uploaded(first, theirs);
  const track = await subtitled(first, theirs, made.id);
  first.opened.beginStop();
  await first.opened.close();

  const off = await testApp({ storage: "none" }, folder);
  const ask = (method: string, rest = "", options = {}) =>
    off.call(method, at(rest, made.id), { key: theirs, ...options });
  expect(await ask("GET")).toMatchObject({ status: 200, body: [{ id: track.id, language: "en", url: null }] });
  expectError(await ask("GET", "?include=content"), 503, "storage_not_configured");
  expectError(await ask("GET", `/${track.id}`), 503, "storage_not_configured");
  expectError(await ask("POST", "", { raw: subtitleForm({ language: "de" }) }), 503, "storage_not_configured");
  expectError(await ask("PATCH", `/${track.id}`, { body: { label: "x" } }), 503, "storage_not_configured");
  expectError(await ask("DELETE", `/${track.id}`), 503, "storage_not_configured");
  expectError(await ask("DELETE", "/999"), 404, "not_found");
  expect((await ask("GET")).body).toHaveLength(1);
});
