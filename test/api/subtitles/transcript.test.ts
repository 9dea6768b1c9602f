import { beforeAll, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "#test/support/app.ts";
import { uploaded } from "#test/support/flow.ts";
import { subtitled } from "#test/support/subtitles.ts";

/** `GET /assets/{id}/transcript`: what is said, from subtitles. */

let app: TestApp;
let key: string;
beforeAll(async () => {
  app = await testApp();
  key = await app.key((await app.tenant()).id);
});

const newAsset = async (): Promise<number> => (await uploaded(app, key)).asset.id;
const read = (id: number, query = "") => app.call("GET", `/api/v1/assets/${id}/transcript${query}`, { key });
const vtt = (...cues: [start: string, end: string, text: string][]) =>
  `WEBVTT\n\n${cues.map(([start, end, text]) => `00:${start} --> 00:${end}\n${text}\n\n`).join("")}`;

/** What a payload is read as. */
const PAYLOADS: [payload: string, text: string | null][] = [
  ["Hello", "Hello"],
  ["Two\nlines", "Two lines"],
  ["<v Ann>Hello <i>there</i></v>", "Hello there"],
  ["- One\n- Two", "- One - Two"],
  ["5 &lt; 6 &amp;&nbsp;7", "5 < 6 & 7"],
  ["<00:00.500>word<00:01.000> by word", "word by word"],
  ["a <b", "a"],
  ["a > b", "a > b"],
  ["<i></i>", null],
  ["&nbsp;", null],
  ["日本語<ruby>漢<rt>かん</rt></ruby>", "日本語漢かん"],
];

describe("a transcript", () => {
  test.each(PAYLOADS)("of %j is %j", async (payload, text) => {
    const id = await newAsset();
    await subtitled(app, key, id, {}, vtt(["00.000", "01.000", payload], ["01.000", "02.000", "End"]));
    expect((await read(id)).text).toBe(text === null ? "End\n" : `${text} End\n`);
  });

  test("is text with a paragraph after each pause, or JSON with times, in the order of speech", async () => {
    const id = await newAsset();
    const cues = vtt(["05.000", "06.500", "Third"], ["00.000", "01.000", "First"], ["01.200", "02.000", "second."]);
    await subtitled(app, key, id, {}, cues);
    const text = await read(id);
    expect([text.status, text.headers.get("content-type"), text.text]).toEqual([
      200,
      "text/plain; charset=utf-8",
      "First second.\n\nThird\n",
    ]);
    const json = await read(id, "?format=json");
    expect(json.headers.get("content-type")).toBe("application/json; charset=utf-8");
    expect(json.body).toEqual({
      language: "en",
      cues: [
        { text: "First", start_ms: 0, end_ms: 1000 },
        { text: "second.", start_ms: 1200, end_ms: 2000 },
        { text: "Third", start_ms: 5000, end_ms: 6500 },
      ],
    });
  });

  test("is that of the default language, or of the one that is asked for", async () => {
    const id = await newAsset();
    await subtitled(app, key, id, { language: "de", position: "0" }, vtt(["00.000", "01.000", "Hallo"]));
    await subtitled(app, key, id, { language: "pt-BR", position: "1" }, vtt(["00.000", "01.000", "Olá"]));
    expect((await read(id)).text).toBe("Hallo\n");
    await subtitled(
      app,
      key,
      id,
      { language: "en", position: "2", is_default: "true" },
      vtt(["00.000", "01.000", "Hello"]),
    );
    expect((await read(id)).text).toBe("Hello\n");
    const other = await read(id, "?language=PT-br");
    expect([other.text, other.headers.get("content-language")]).toEqual(["Olá\n", "pt-BR"]);
    expect((await read(id, "?language=fr")).status).toBe(404);
    expect((await read(id, "?language=!")).body.code).toBe("invalid_language");
    expect((await read(id, "?format=xml")).status).toBe(422);
  });

  test("does not exist without subtitles, for other tenants, or without a key", async () => {
    const id = await newAsset();
    expect([(await read(id)).status, (await read(id)).body.error]).toEqual([404, "The asset has no subtitles."]);
    await subtitled(app, key, id);
    const other = await app.key((await app.tenant()).id);
    expect((await app.as(other).getTranscript(id)).status).toBe(404);
    expect((await app.as().getTranscript(id)).status).toBe(401);
  });

  test("of the largest subtitles is complete", async () => {
    const id = await newAsset();
    const count = 20_000;
    const time = (ms: number) => new Date(ms).toISOString().slice(11, 23);
    const cues = Array.from(
      { length: count },
      (_, at) => `${time(at * 1000)} --> ${time(at * 1000 + 900)}\nCue ${at}\n\n`,
    );
    await subtitled(app, key, id, {}, `WEBVTT\n\n${cues.join("")}`);
    const { body } = await read(id, "?format=json");
    expect([body.cues.length, body.cues.at(-1).text]).toEqual([count, `Cue ${count - 1}`]);
  });
});
