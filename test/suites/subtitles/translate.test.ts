import { beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { uploaded } from "#test/support/flow.ts";
import { subtitled } from "#test/support/subtitles.ts";
import { KEY, type Kind, loud, type Mischief, translationService } from "#test/support/translation-services.ts";

const KINDS: Kind[] = ["libretranslate", "apertium", "deepl", "openai"];
const FILE = [
  "WEBVTT - A film",
  "",
  "STYLE",
  "::cue(b) { color: lime }",
  "",
  "NOTE Said by no one",
  "",
  "intro",
  "00:01.000 --> 00:03.500 line:0 align:start",
  "One sentence that",
  "continues for two lines",
  "",
  "00:00:04.000 --> 00:00:05.000",
  "<v Fred Smith><i>Tom &amp; Jerry</i></v>",
  "",
  "00:00:05.000 --> 00:00:06.000",
  "- Where <b>are</b> you?",
  "- Here.",
  "",
  "00:00:06.000 --> 00:00:07.000",
  "[♪ 1984 ♪]",
  "",
  "00:00:07.000 --> 00:00:08.000",
  "Now <00:00:07.500>then",
  "",
  "00:00:08.000 --> 00:00:09.000",
  "Here.",
  "",
].join("\r\n");
const TRANSLATED = FILE.replace(
  "One sentence that\r\ncontinues for two lines",
  "ONE SENTENCE THAT\r\nCONTINUES FOR TWO LINES",
)
  .replace("Tom &amp; Jerry", "TOM &amp; JERRY")
  .replace("Where <b>are</b> you?", "WHERE <b>ARE</b> YOU?")
  .replaceAll("Here.", "HERE.")
  .replace("Now <00:00:07.500>then", "NOW <00:00:07.500>THEN");

type Setup = Awaited<ReturnType<typeof setUp>>;
async function setUp(kind: Kind, flags: Record<string, unknown> = {}) {
  const service = await translationService(kind);
  const app = await testApp({
    translate: kind,
    translate_url: service.url,
    translate_key: KEY,
    translate_model: "some-model",
    translate_timeout_seconds: 1,
    ...flags,
  });
  return { ...(await assetOf(app)), service };
}

async function assetOf(app: TestApp) {
  const key = await app.key((await app.tenant()).id);
  const { asset } = await uploaded(app, key);
  const track = await subtitled(app, key, asset.id, {}, FILE);
  await app.newEvents();
  const at = (rest = "") => `/api/v1/assets/${asset.id}/subtitles${rest}`;
  return {
    app,
    key,
    asset,
    track,
    at,
    translate: (target_language: unknown, id = track.id, headers = {}) =>
      app.as({ key, headers }).unchecked.translateSubtitle(asset.id, id, { target_language }),
    tracks: async () => (await app.as(key).listSubtitles(asset.id, { include: "content" })).body,
  };
}

/** Nothing remains of it: no track, no event, no object. */
async function nothingDone({ app, tracks, track, asset }: Pick<Setup, "app" | "tracks" | "track" | "asset">) {
  expect((await tracks()).map(({ id, content }: any) => [id, content])).toEqual([[track.id, FILE]]);
  expect(await app.newEvents()).toEqual([]);
  const stored = await app.opened.app.objects?.list(`tenants/${asset.tenant_id}/assets/${asset.id}/subtitles/`);
  expect(stored?.objects).toHaveLength(1);
}

describe.each(KINDS)("translated by %s", (kind) => {
  test("a track becomes another one, with only the words changed", async () => {
    const { app, track, translate, tracks, asset } = await setUp(kind);
    const made = await translate("DE");
    expect(made.status).toBe(201);
    expect(made.body).toMatchObject({
      asset_id: asset.id,
      language: "de",
      label: "English (auto translated)",
      source: "translation",
      status: "ready",
      is_default: false,
      bytes: Buffer.byteLength(TRANSLATED),
    });
    expect(made.headers.get("ratelimit-policy")).toBe('"translate";q=20;w=60');
    expect((await tracks()).map(({ language, content }) => [language, content])).toEqual([
      ["de", TRANSLATED],
      ["en", FILE],
    ]);
    const data = { asset_id: String(asset.id), subtitle_id: made.body.id, language: "de", source: "translation" };
    expect(await app.newEvents()).toEqual([
      {
        type: "video.subtitle.ready",
        tenantId: asset.tenant_id,
        data: { ...data, label: "English (auto translated)" },
      },
    ]);
    expect((await app.call("GET", made.body.url)).text).toBe(TRANSLATED);
    expect(track.id).not.toBe(made.body.id);
  });

  test("each distinct line is sent once, in batches that the service accepts", async () => {
    const { app, key, asset, at, service, translate } = await setUp(kind);
    const lines = Array.from(
      { length: 130 },
      (_, k) => `00:${String(k % 60).padStart(2, "0")}.000 --> 09:00.000\nline ${k % 120} said\n`,
    );
    const long = await subtitled(app, key, asset.id, { language: "en-GB" }, `WEBVTT\n\n${lines.join("\n")}`);
    await app.call(
      "DELETE",
      at(`/${(await app.call("GET", at(), { key })).body.find((one: any) => one.language === "en").id}`),
      { key },
    );
    await app.call("PATCH", at(`/${long.id}`), { key, body: { language: "en" } });
    const made = await translate("de", long.id);
    expect([made.status, made.body.language]).toEqual([201, "de"]);
    const texts = service.asked.flatMap((one) => one.texts);
    expect(texts.toSorted()).toEqual(Array.from({ length: 120 }, (_, k) => `line ${k} said`).toSorted());
    const { content } = (await app.call("GET", at(`/${made.body.id}`), { key })).body;
    expect(content).toBe(`WEBVTT\n\n${lines.join("\n").replace(/line \d+ said/g, (line) => line.toUpperCase())}`);
  });

  test.each<[string, Mischief[]]>([
    [
      "is busy twice",
      [
        (response) => response.writeHead(429, { "retry-after": "0" }).end(),
        (response) => response.writeHead(503).end("x"),
      ],
    ],
    ["hangs up", [(response) => response.destroy()]],
    ["hangs", [() => {}]],
  ])("a service that %s is asked again", async (_, mischief) => {
    const { service, translate, tracks } = await setUp(kind);
    service.mischief.push(...mischief);
    expect((await translate("de")).status).toBe(201);
    expect((await tracks())[0].content).toBe(TRANSLATED);
  });

  const forever = (act: Mischief): Mischief[] => Array.from({ length: 100 }, () => act);
  test.each<[string, Mischief[]]>([
    ["always fails", forever((response) => response.writeHead(500, { "retry-after": "0" }).end())],
    ["refuses", forever((response) => response.writeHead(403).end(`{"error":"no ${KEY}"}`))],
    ["asks to come back tomorrow", forever((response) => response.writeHead(429, { "retry-after": "86400" }).end())],
    ["sends elsewhere", forever((response) => response.writeHead(307, { location: "/translate" }).end())],
    ["answers no JSON", forever((response) => response.end("<html>"))],
    [
      "answers other JSON",
      forever((response) => response.end('{"translatedText":{"a":1},"choices":[],"translations":7}')),
    ],
    [
      "never stops to answer",
      forever((response) => {
        response.on("error", () => {});
        const more = () => {
          while (!response.destroyed && response.write("x".repeat(65_536)));
          response.once("drain", more);
        };
        more();
      }),
    ],
  ])("a service that %s leaves everything as it was", async (_, mischief) => {
    const made = await setUp(kind);
    made.service.mischief.push(...mischief);
    expectError(await made.translate("de"), 502, "translation_failed");
    await nothingDone(made);
  });

  test("an unsupported language is reported before a text is sent", async () => {
    if (kind === "openai") return;
    const made = await setUp(kind);
    expectError(await made.translate("haw"), 422, "invalid_language");
    expect(made.service.asked).toEqual([]);
    await nothingDone(made);
  });

  test("variants of a language are mapped to the service's names", async () => {
    if (kind === "openai") return;
    const { translate, service } = await setUp(kind);
    expect((await translate("zh-CN")).body.language).toBe("zh-CN");
    const { sent } = service.asked[0] as { sent: any };
    expect(sent.target ?? sent.target_lang ?? sent.langpair).toBe(
      { libretranslate: "zh-Hans", apertium: "eng|zho", deepl: "ZH-HANS" }[kind],
    );
  });
});

describe("texts with broken tags", () => {
  test("lost or reordered tags: the texts between them are translated separately", async () => {
    const { service, translate, tracks } = await setUp("libretranslate");
    const plain: Mischief = (response, texts) => response.end(JSON.stringify({ translatedText: texts }));
    service.mischief.push(plain, (response, texts) =>
      response.end(JSON.stringify({ translatedText: texts.map((text) => text.replaceAll(/<[^>]*>/g, "")) })),
    );
    expect((await translate("de")).status).toBe(201);
    expect((await tracks())[0].content).toBe(TRANSLATED);
    expect(service.asked.map(({ texts }) => texts)).toEqual([
      ["One sentence that continues for two lines", "Tom & Jerry", "Here."],
      ['Where <g id="1">are</g> you?', 'Now <x id="1"/>then'],
      ["Where", "are", "you?", "Now", "then"],
    ]);
  });

  test("text that could end a cue or begin a tag is escaped", async () => {
    const { service, translate, tracks, track } = await setUp("libretranslate");
    service.mischief.push((response, texts) =>
      response.end(JSON.stringify({ translatedText: texts.map((_, k) => `a --> b <i>\n\nNOTE\u0000 & ${k}`) })),
    );
    expect((await translate("de")).status).toBe(201);
    expect((await tracks())[0].content).toContain("\r\na --&gt; b &lt;i&gt;\r\nNOTE &amp; 0\r\n\r\n");
    expect(track.language).toBe("en");
  });

  test.each<[string, (texts: string[]) => unknown]>([
    ["fewer texts", (texts) => texts.slice(1)],
    ["more texts", (texts) => [...texts, "more"]],
    ["an empty text", (texts) => texts.map(() => " ")],
    ["no strings", (texts) => texts.map(() => 7)],
  ])("%s are no answer", async (_, spoil) => {
    for (const [kind, wrap] of [
      ["libretranslate", (texts: unknown) => ({ translatedText: texts })],
      ["deepl", (texts: any) => ({ translations: texts.map((text: unknown) => ({ text })) })],
    ] as const) {
      const made = await setUp(kind);
      made.service.mischief.push((response, texts) => response.end(JSON.stringify(wrap(spoil(texts)))));
      expectError(await made.translate("de"), 502, "translation_failed", kind);
      await nothingDone(made);
    }
  });

  test("a model that returns a wrong count is asked again, with smaller batches", async () => {
    const { service, translate, tracks } = await setUp("openai");
    const short: Mischief = (response, texts) =>
      response.end(JSON.stringify({ choices: [{ message: { content: JSON.stringify(texts.slice(1)) } }] }));
    service.mischief.push(short, short);
    expect((await translate("de")).status).toBe(201);
    expect((await tracks())[0].content).toBe(TRANSLATED);
    expect(service.asked.slice(0, 4).map(({ texts }) => texts.length)).toEqual([3, 3, 2, 1]);
  });

  test("a server that accepts one text at a time gets single texts", async () => {
    const { service, translate, tracks } = await setUp("libretranslate");
    const old: Mischief = (response, texts, { sent }) =>
      response.end(JSON.stringify({ translatedText: Array.isArray(sent.q) ? String(texts) : loud(sent.q) }));
    service.mischief.push(...Array.from({ length: 40 }, () => old));
    expect((await translate("de")).status).toBe(201);
    expect((await tracks())[0].content).toBe(TRANSLATED);
  });
});

describe("the new track", () => {
  let made: Setup;
  beforeEach(async () => {
    made = await setUp("libretranslate");
  });

  test("replaces one of its language, with its id, position and default, also at 20 tracks", async () => {
    const { app, key, asset, translate, tracks } = made;
    const german = await subtitled(app, key, asset.id, {
      language: "de",
      label: "Deutsch",
      position: "7",
      is_default: "true",
    });
    for (let k = 2; k < 20; k++) await subtitled(app, key, asset.id, { language: `x${String.fromCharCode(97 + k)}x` });
    await app.newEvents();
    const again = await translate("de");
    expect(again.status).toBe(201);
    expect(again.body).toMatchObject({
      id: german.id,
      position: 7,
      is_default: true,
      label: "English (auto translated)",
      source: "translation",
    });
    expect((await app.newEvents()).map(({ type, data }) => [type, data.subtitle_id])).toEqual([
      ["video.subtitle.ready", german.id],
    ]);
    expect((await tracks()).find((one) => one.id === german.id)?.content).toBe(TRANSLATED);
    expectError(await translate("zh"), 422, "subtitle_limit_reached");
    expect(await app.newEvents()).toEqual([]);
  });

  test("has the warnings of the track that it translates", async () => {
    const { app, key, asset, translate } = await setUp("libretranslate");
    const form = `${FILE}\r\n00:00:10.000 --> 00:00:10.000\r\nGone`;
    const track = await subtitled(app, key, asset.id, { language: "en-GB" }, form);
    const { body } = await translate("de", track.id);
    expect([body.warnings, body.warnings.length]).toEqual([track.warnings, 1]);
  });

  test("has the suffix once, also when it is translated again", async () => {
    const { app, key, at, track, translate } = made;
    await app.call("PATCH", at(`/${track.id}`), { key, body: { label: "English (auto translated)" } });
    expect((await translate("de")).body.label).toBe("English (auto translated)");
  });

  test("is created once with one Idempotency-Key", async () => {
    const { app, service, track, translate } = made;
    const first = await translate("de", track.id, { "idempotency-key": "once" });
    const asked = service.asked.length;
    const second = await translate("de", track.id, { "idempotency-key": "once" });
    expect(second.headers.get("idempotent-replayed")).toBe("true");
    expect({ ...second.body, url: null }).toEqual({ ...first.body, url: null });
    expect((await app.call("GET", second.body.url)).text).toBe(TRANSLATED);
    expect(service.asked).toHaveLength(asked);
    expect(await app.newEvents()).toHaveLength(1);
  });

  test.each([
    ["is deleted", "DELETE", undefined, 404, "not_found"],
    ["says something else", "PATCH", { content: FILE.replace("Here.", "There.") }, 409, "subtitle_changed"],
    ["gets another language", "PATCH", { language: "fr" }, 409, "subtitle_changed"],
  ])("is not created when its source %s meanwhile", async (_, method, body, status, code) => {
    const { app, key, at, track, service, translate, tracks } = made;
    service.mischief.push(async (response, texts) => {
      await app.call(method, at(`/${track.id}`), { key, body });
      response.end(JSON.stringify({ translatedText: texts }));
    });
    expectError(await translate("de"), status, code);
    expect((await tracks()).filter((one: any) => one.language === "de")).toEqual([]);
    expect(await app.newEvents()).toEqual([]);
  });

  test("a program that stops does not wait for the service", async () => {
    const { app, service, translate } = made;
    service.mischief.push(() => app.opened.beginStop());
    expectError(await translate("de"), 502, "translation_failed");
  });
});

describe("refused", () => {
  test.each([
    ["", 422, "invalid_language"],
    ["no language", 422, "invalid_language"],
    ["qq-ZZ", 422, "invalid_language"],
    ["en", 422, "invalid_language"],
    ["EN", 422, "invalid_language"],
    [undefined, 422, "parameter_missing"],
    [7, 422, "parameter_missing"],
  ])("target_language %j", async (target, status, code) => {
    const made = await setUp("libretranslate");
    expectError(await made.translate(target), status, code);
    expect(made.service.asked).toEqual([]);
    await nothingDone(made);
  });

  test.each([[{}], [{ translate: "libretranslate" }], [{ translate: "deepl" }], [{ translate: "openai" }]])(
    "without a service (%j)",
    async (flags) => {
      const made = await assetOf(await testApp(flags));
      expectError(await made.translate("de"), 503, "translation_not_configured");
      expectError(await made.translate("de", 9876), 404, "not_found");
      await nothingDone(made);
    },
  );

  test("beyond the limit, with the time to wait", async () => {
    const { translate } = await setUp("libretranslate", { rate_limit_translate: "2/60" });
    expect((await translate("de")).status).toBe(201);
    expect((await translate("de")).status).toBe(201);
    const third = await translate("de");
    expectError(third, 429, "rate_limited");
    expect(Number(third.headers.get("retry-after"))).toBeGreaterThan(0);
  });
});
