import { beforeAll, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "../support/app.ts";
import { callback, putArtifacts } from "../support/flow.ts";
import { completed, leased, MEDIA } from "./lease.ts";

/** What a hostile worker writes for people and browsers is served as data, and shown as text. */

let app: TestApp;
let key: string;
beforeAll(async () => {
  app = await testApp();
  key = await app.key((await app.tenant()).id);
});

const SCRIPT = "<script>alert(1)</script>";
const HTML = `<!doctype html><html><body>${SCRIPT}</body></html>`;
const SVG = `<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)">${SCRIPT}</svg>`;
const CONTENTS = { HTML, SVG, JavaScript: "alert(1)", "a PDF": "%PDF-1.7", XML: `<?xml version="1.0"?>${SVG}` };
const NAMES = [
  ..."1.m4s init.mp4 a.ts a.html a.htm a.xhtml a.svg a.svgz a.js a.mjs a.css a.xml a.xsl a.pdf a.swf a.wasm a.HTML".split(
    " ",
  ),
  ..."a.mhtml a.txt a a.jpg.html a.html.jpg storyboard-1.jpg x.webmanifest x.vtt x.m3u8 x.mpd x.png".split(" "),
];
/** Types that a browser neither shows as a page nor runs. */
const INERT =
  /^(application\/(octet-stream|json|vnd\.apple\.mpegurl|dash\+xml)|(video|audio)\/[\w.-]+|image\/(jpeg|png|webp|gif)|text\/vtt(; charset=utf-8)?)$/;

describe("no file of an attempt is a page or a program", () => {
  test.each(Object.entries(CONTENTS))("%s", async (_, content) => {
    const objects = Object.fromEntries(NAMES.map((name) => [name, content]));
    const { answer, asset, contract } = await completed(app, key, { objects });
    expect(answer.status).toBe(200);
    const version = contract.outputs.prefix.split("/").at(-2);
    const top = ["master.m3u8", "manifest.mpd", "storyboard.vtt", "thumbnail.jpg", "storyboard.json"];
    for (const name of [...NAMES.map((each) => `${version}/${each}`), ...top]) {
      const got = await app.call("GET", `/media/${asset.id}/${name}`);
      expect([name, got.status]).toEqual([name, 200]);
      expect([name, INERT.test(got.headers.get("content-type") ?? "")]).toEqual([name, true]);
      expect([name, got.headers.get("x-content-type-options")]).toEqual([name, "nosniff"]);
    }
  });

  test("the type that the worker sends with a file has no effect", async () => {
    const { contract, asset } = await leased(app, key);
    const { prefix } = contract.outputs;
    const { body } = await app.call("POST", contract.artifacts.sign_url, {
      worker: app.worker,
      lease: contract.lease.token,
      body: { paths: [`${prefix}evil.m4s`] },
    });
    const put = await app.call("PUT", body[0].url, { raw: HTML, headers: { "content-type": "text/html" } });
    expect(put.status).toBe(200);
    const paths = await putArtifacts(app, contract);
    expect((await callback(app, contract, "complete", { ...paths, media: MEDIA })).status).toBe(200);
    const got = await app.call("GET", `/media/${asset.id}/${prefix.split("/").at(-2)}/evil.m4s`);
    expect(got.headers.get("content-type")).toBe("video/iso.segment");
  });

  test("a thumbnail that is no image is not converted to one, and is no page", async () => {
    for (const content of Object.values(CONTENTS)) {
      const { asset, contract } = await completed(app, key, { objects: { "thumbnail.jpg": content } });
      expect(contract.outputs.thumbnail_path).toContain("thumbnail.jpg");
      const got = await app.call("GET", `/media/${asset.id}/thumbnail.jpg`);
      expect(got.headers.get("content-type")).toBe("image/jpeg");
      expect(got.headers.get("x-content-type-options")).toBe("nosniff");
    }
  });
});

describe("markup in texts", () => {
  test("captions are cues without markup that a page would run", async () => {
    const text = `WEBVTT\n\n00:00:00.000 --> 00:00:04.000\n${SCRIPT}<img src=x onerror=alert(1)><b onclick="x">bold</b>\n`;
    const { contract, asset } = await leased(app, key);
    const path = `${contract.outputs.prefix}captions-en.vtt`;
    const paths = await putArtifacts(app, contract, { [path]: text });
    const done = await callback(app, contract, "complete", { ...paths, media: MEDIA, subtitle_paths: { en: path } });
    expect(done.status).toBe(200);
    const { body } = await app.as(key).listSubtitles(asset.id);
    const got = await app.call("GET", new URL(body[0].url).pathname);
    expect(got.headers.get("content-type")).toBe("text/vtt; charset=utf-8");
    expect(got.headers.get("x-content-type-options")).toBe("nosniff");
  });
});

/** Escape sequences of terminals, of both sets of control characters, and what reverses the order of a line. */
const CONTROL = {
  "clears the screen": "\u001b[2J",
  "changes the title of a window": "\u001b]0;title\u0007",
  "a sequence of C1": "\u009b2J",
  "a carriage return": "right\rwrong",
  "a backspace": "a\b\b",
  "a delete": "\u007f",
  "a forged line": "ok\nERROR forged",
  "a reversed order": "\u202egpj.exe",
  "isolated reversed order": "\u2067abc",
  "a line separator": "a\u2028b",
};
const SHOWN = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]/u;
/** The same of a log, which has lines. */
const isUnsafeLog = (text: string) => SHOWN.test(text.replaceAll(/[\n\t]/g, ""));
const shown = (value: unknown): string[] =>
  typeof value === "string"
    ? [value]
    : value && typeof value === "object"
      ? Object.entries(value).flatMap(([name, each]) => [name, ...shown(each)])
      : [];

describe("control characters are replaced where a worker's text is stored", () => {
  test.each(Object.entries(CONTROL))("%s", async (_, text) => {
    const failing = await leased(app, key);
    const beat = { progress: 1, stage: text, worker_id: `w${text}`, log_tail: `a\n\tb${text}` };
    expect((await callback(app, failing.contract, "heartbeat", beat)).status).toBe(200);
    const job = async (id: number) => (await app.as({ admin: app.admin }).getJob(id)).body;
    const running = await job(failing.job.id);
    const { log_tail: logTail, ...rest } = running;
    expect(logTail).toContain("a\n\tb");
    expect(isUnsafeLog(logTail)).toBe(false);
    expect(shown(rest).filter((each) => SHOWN.test(each))).toEqual([]);
    const failure = { code: text, message: text, retryable: false, log_tail: text };
    expect((await callback(app, failing.contract, "fail", failure)).status).toBe(200);
    const { log_tail: last, ...failed } = await job(failing.job.id);
    expect(isUnsafeLog(last)).toBe(false);
    expect(failed.error.message).not.toBe("");
    expect(shown(failed).filter((each) => SHOWN.test(each))).toEqual([]);

    const rendition = { name: `n${text}`, bandwidth: 1, codecs: `avc1${text}`, playlist_path: "low/playlist.m3u8" };
    const media = { ...MEDIA, renditions: [rendition], warnings: [{ code: "track_skipped", message: text }] };
    const { answer, asset } = await completed(app, key, { fields: { media } });
    expect(answer.status).toBe(200);
    const { body: ready } = await app.as(key).getAsset(asset.id);
    expect(ready.warnings).toHaveLength(1);
    expect(shown(ready).filter((each) => SHOWN.test(each))).toEqual([]);
    const { body: workers } = await app.as({ admin: app.admin }).listWorkers();
    expect(shown(workers).filter((each) => SHOWN.test(each))).toEqual([]);
  });
});

describe("texts beyond their limits are refused", () => {
  const long = (length: number) => "x".repeat(length);
  const BEATS = { stage: 101, worker_id: 201, log_tail: 32_769 };
  test.each(Object.entries(BEATS))("heartbeat: %s", async (field, length) => {
    const { contract } = await leased(app, key);
    expect((await callback(app, contract, "heartbeat", { [field]: long(length) })).status).toBe(422);
  });
  const FAILURES = { code: 101, message: 2001, log_tail: 65_537 };
  test.each(Object.entries(FAILURES))("failure: %s", async (field, length) => {
    const { contract } = await leased(app, key);
    expect((await callback(app, contract, "fail", { [field]: long(length) })).status).toBe(422);
    expect((await callback(app, contract, "fail", { [field]: long(2 ** 21) })).status).toBe(413);
  });
});
