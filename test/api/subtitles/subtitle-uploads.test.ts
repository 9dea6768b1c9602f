import { beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { uploaded } from "#test/support/flow.ts";
import { subtitleForm, VTT } from "#test/support/subtitles.ts";

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
const list = async (query = "") => (await app.call("GET", at(query), { key })).body;
const content = async (id: number) => (await app.as(key).getSubtitle(asset.id, id)).body.content;
/** Keys of the texts in storage. */
const texts = async () =>
  (await app.opened.app.objects?.list(`tenants/${asset.tenant_id}/assets/${asset.id}/subtitles/`))?.objects.map(
    (one) => one.key,
  );
const ready = (subtitle: any, fields = {}) => ({
  type: "video.subtitle.ready",
  tenantId: asset.tenant_id,
  data: {
    asset_id: String(asset.id),
    subtitle_id: subtitle.id,
    language: subtitle.language,
    label: subtitle.label,
    source: "upload",
    ...fields,
  },
});

describe("an upload", () => {
  test("creates a track, with one event", async () => {
    const { status, body } = await post({ language: "EN-us", label: "English (US)" });
    expect(status).toBe(201);
    expect(body).toEqual({
      id: body.id,
      asset_id: asset.id,
      language: "en-US",
      label: "English (US)",
      position: 0,
      source: "upload",
      is_default: false,
      role: "subtitle",
      status: "ready",
      bytes: VTT.length,
      warnings: [],
      confidence: null,
      error: null,
      url: expect.stringMatching(/^http:\/\/vodbox\.test\//),
      created_at: expect.any(String),
      updated_at: body.created_at,
    });
    expect(await app.newEvents()).toEqual([ready(body)]);
    expect(await app.as(key).getSubtitle(asset.id, body.id)).toMatchObject({ status: 200, body: { content: VTT } });
    expect(await list()).toEqual([{ ...body, url: expect.any(String) }]);
    expect(await texts()).toHaveLength(1);
  });

  test.each<[string, string | Uint8Array, string, string]>([
    [
      "WebVTT as it came",
      "WEBVTT x\r\n\r\nNOTE y\r\n\r\n00:01.000 --> 00:02.000\r\nHi",
      "a.vtt",
      "WEBVTT x\r\n\r\nNOTE y\r\n\r\n00:01.000 --> 00:02.000\r\nHi",
    ],
    ["a file without its header", "00:01.000 --> 00:02.000\nHi", "a.VTT", "WEBVTT\n\n00:01.000 --> 00:02.000\nHi"],
    [
      "a byte order mark",
      "\ufeffWEBVTT\n\n00:01.000 --> 00:02.000\nHi",
      "a.vtt",
      "WEBVTT\n\n00:01.000 --> 00:02.000\nHi",
    ],
    [
      "SubRip",
      "\ufeff1\r\n00:00:01,000 --> 00:00:02,500\r\n<font color=red>Tom & Jerry</font>\r\n",
      "a.SRT",
      "WEBVTT\n\n00:00:01.000 --> 00:00:02.500\nTom &amp; Jerry\n",
    ],
    [
      "SubRip by what it holds",
      "1\n00:00:01,000 --> 00:00:02,500\nHi",
      "subtitles",
      "WEBVTT\n\n00:00:01.000 --> 00:00:02.500\nHi\n",
    ],
    ["WebVTT that is called SubRip", VTT, "a.srt", VTT],
    [
      "overlapping cues",
      `${VTT}\n00:00:01.000 --> 00:00:03.000\nGrüße 😀\n`,
      "ä ö.vtt",
      `${VTT}\n00:00:01.000 --> 00:00:03.000\nGrüße 😀\n`,
    ],
  ])("of %s", async (_, file, name, expected) => {
    const { status, body } = await post({}, file, name);
    expect(status, JSON.stringify(body)).toBe(201);
    expect([await content(body.id), body.bytes]).toEqual([expected, Buffer.byteLength(expected)]);
  });

  const skipped = (count: number, message: RegExp) => [
    { code: "cues_skipped", count, message: expect.stringMatching(message) },
  ];
  const MAP = "X-TIMESTAMP-MAP=MPEGTS:900000,LOCAL:00:00:00.000";
  test.each<[string, string, string, string, unknown[]]>([
    [
      "a map of timestamps",
      `WEBVTT\n${MAP}\n\n00:01.000 --> 00:02.000\nHi`,
      "a.vtt",
      "WEBVTT\n\n00:01.000 --> 00:02.000\nHi",
      [],
    ],
    [
      "a map with LOCAL",
      `WEBVTT\n${MAP.replace("00:00.000", "00:05.000")}\n\n00:01.000 --> 00:02.000\nA\n\n00:06.000 --> 00:07.000\nHi`,
      "a.vtt",
      "WEBVTT\n\n00:00:01.000 --> 00:00:02.000\nHi",
      skipped(1, /^1 cue was left out: 1 before the start of the video \(line 4\)\.$/),
    ],
    [
      "cues without duration",
      "WEBVTT\n\n00:01.000 --> 00:01.000\nA\n\n00:01.000 --> 00:02.000\nHi\n\n2\n\u001a",
      "a.vtt",
      "WEBVTT\n\n00:01.000 --> 00:02.000\nHi\n\n",
      skipped(1, /1 without duration \(line 3\)/),
    ],
    [
      "SubRip with small faults",
      "1\n00:00:01,000 --> 00:00:01,000\nA\n\n2\n00:00:01,000 --> 00:00:02,500\nHi\\Nthere\n\n3\n00:00:03,000 --> 00:00:04,000\n\n4\n\u001a",
      "a.srt",
      "WEBVTT\n\n00:00:01.000 --> 00:00:02.500\nHi\nthere\n",
      skipped(2, /^2 cues were left out: 1 without duration \(line 2\), 1 without text \(line 10\)\.$/),
    ],
    [
      "TTML",
      '<tt xmlns="http://www.w3.org/ns/ttml"><body><div>\n<p begin="1s" end="2.5s">Tom<br/>Jerry</p>\n<p begin="3s">B</p></div></body></tt>',
      "a.dfxp",
      "WEBVTT\n\n00:00:01.000 --> 00:00:02.500\nTom\nJerry\n",
      skipped(1, /1 without an end \(line 3\)/),
    ],
  ])("of %s is repaired, and says what was left out", async (_, file, name, expected, warnings) => {
    const { status, body } = await post({}, file, name);
    expect([status, body.warnings]).toEqual([201, warnings]);
    expect(await content(body.id)).toBe(expected);
    expect(await app.newEvents()).toEqual([ready(body)]);
    const one = (await app.as(key).getSubtitle(asset.id, body.id)).body;
    const all = [one, ...(await list()), ...(await list("?include=content"))];
    expect(all.map((each) => each.warnings)).toEqual([warnings, warnings, warnings]);
    const patched = await app.as(key).updateSubtitle(asset.id, body.id, { label: "Other" });
    expect(patched.body.warnings).toEqual(warnings);
    const replaced = await app.as(key).updateSubtitle(asset.id, body.id, { content: expected });
    expect([replaced.status, replaced.body.warnings]).toEqual([200, []]);
    const again = await app
      .as(key)
      .updateSubtitle(asset.id, body.id, { content: `${expected}\n\n00:09.000 --> 00:09.000\nA` });
    expect(again.body.warnings).toEqual(skipped(1, /^1 cue was left out: 1 without duration \(line \d+\)\.$/));
  });

  test.each<[string, string | Uint8Array, string, RegExp, string[]?]>([
    ["nothing", "", "a.vtt", /at least one cue/],
    ["a header alone", "WEBVTT\n\nNOTE empty\n", "a.vtt", /at least one cue/],
    ["SubRip that says nothing", "\n\n", "a.srt", /at least one cue/],
    ["a letter", "Dear Sir,\nhow are you?", "a.vtt", /line 1: "Dear Sir," has no timing line/],
    [
      "TTML with a document type",
      '<?xml version="1.0"?>\n<!DOCTYPE tt SYSTEM "file:///etc/passwd"><tt/>',
      "a.ttml",
      /line 2: a document type is not supported/,
    ],
    ["malformed TTML", "<tt>\n<body>\n</tt>", "a.ttml", /line 3: <\/tt> has no start tag/],
    ["a letter in SubRip", "Dear Sir,\nhow are you?", "a.srt", /line 1: text precedes/],
    [
      "bad times",
      "WEBVTT\n\n00:02.000 --> 00:01.000\nA\n\n00:00:03,000 --> 00:00:04,000\nB",
      "a.vtt",
      /line 3: the cue must end after it starts \(and 1 more\)/,
      [
        "line 3: the cue must end after it starts",
        'line 6: the time "00:00:03,000" must have a point before the milliseconds, as in 00:00:01.000',
      ],
    ],
    ["UTF-16", Buffer.from(`\ufeff${VTT}`, "utf16le"), "a.vtt", /convert it to UTF-8/],
    ["Latin-1", Buffer.from(VTT.replace("Hello", "Grüße"), "latin1"), "a.vtt", /convert it/],
    [
      "cues without duration alone",
      "WEBVTT\n\n00:01.000 --> 00:01.000\nA",
      "a.vtt",
      /at least one cue; 1 cue was left out: 1 without duration \(line 3\)/,
    ],
    ["NULs", VTT.replace("Hello", "a\0b"), "a.vtt", /NUL/],
    ["an image", Buffer.from([0x89, 0x50, 0x4e, 0x47, 0xd, 0xa]), "a.vtt", /UTF-8/],
    [
      "SubRip that grows too large",
      `1\n00:00:01,000 --> 00:00:02,000\n${`${"&".repeat(80)}\n`.repeat(51)}\n`.repeat(100),
      "a.srt",
      /at most 2000000 bytes/,
    ],
  ])("of %s is refused, and nothing is kept", async (_, file, name, message, details) => {
    const answer = await post({}, file, name);
    expectError(answer, 422, "invalid_subtitle");
    expect(answer.body.error).toMatch(message);
    expect(answer.error.details.file).toEqual(details ?? [expect.any(String)]);
    expect([await list(), await app.newEvents(), await texts()]).toEqual([[], [], []]);
  });

  test.each<[string, Record<string, string | null>, string]>([
    ["no language", { language: null }, "parameter_missing"],
    ["no label", { label: null }, "parameter_missing"],
    ["an empty language", { language: "" }, "invalid_language"],
    ["a word for a language", { language: "english" }, "invalid_language"],
    ["half a tag", { language: "xx-" }, "invalid_language"],
    ["a NUL in the language", { language: "en\0" }, "invalid_language"],
    ["a blank label", { label: " " }, "validation_failed"],
    ["a long label", { label: "x".repeat(201) }, "validation_failed"],
    ["a bad position", { position: "-1" }, "validation_failed"],
    ["a position beyond all", { position: "9999999999" }, "validation_failed"],
    ["a bad default", { is_default: "maybe" }, "validation_failed"],
    ["an unknown role", { role: "main" }, "validation_failed"],
  ])("with %s is refused", async (_, fields, code) => {
    expectError(await post(fields), 422, code);
    expect([await list(), await app.newEvents(), await texts()]).toEqual([[], [], []]);
  });

  test("needs a file, in a form, of at most 2 MB", async () => {
    expectError(await post({}, null), 422, "parameter_missing");
    expectError(await post({ file: VTT }, null), 422, "parameter_missing");
    expectError(
      await app.as(key).unchecked.createSubtitle(asset.id, { language: "en", label: "E" }),
      415,
      "unsupported_media_type",
    );
    const full = `${VTT}\n00:00:03.000 --> 00:00:04.000\n`;
    const filled = (bytes: number) => full + "x".repeat(bytes - full.length);
    expect((await post({}, filled(2_000_000))).status).toBe(201);
    expectError(await post({ language: "de" }, filled(2_000_001)), 413, "payload_too_large");
    expect(await list()).toHaveLength(1);
  });

  test("is for an asset of the caller's, with its scope", async () => {
    const raw = () => subtitleForm();
    expectError(await app.call("POST", at("", 987654), { key, raw: raw() }), 404, "not_found");
    const reader = await app.key(asset.tenant_id, ["assets:read"]);
    expectError(await app.call("POST", at(), { key: reader, raw: raw() }), 403, "forbidden_scope");
    const other = await app.key((await app.tenant()).id);
    expectError(await app.call("POST", at(), { key: other, raw: raw() }), 404, "not_found");
    expect((await app.call("POST", at(), { admin: app.admin, raw: raw() })).status).toBe(201);
    expect((await app.as(reader).listSubtitles(asset.id)).body).toHaveLength(1);
  });

  test("can be repeated: created once, answered twice, with a URL that works", async () => {
    const send = (form: FormData) =>
      app.as({ key, headers: { "idempotency-key": "one" } }).createSubtitle(asset.id, form);
    const first = await send(subtitleForm());
    const second = await send(subtitleForm());
    expect([first.status, second.status, second.headers.get("idempotent-replayed")]).toEqual([201, 201, "true"]);
    expect(second.body).toEqual({ ...first.body, url: expect.any(String) });
    expect((await app.call("GET", second.body.url)).text).toBe(VTT);
    expectError(await send(subtitleForm({}, VTT.replace("Hello", "Other"))), 422, "idempotency_key_reused");
    expect([(await list()).length, (await app.newEvents()).length]).toEqual([1, 1]);
  });
});
