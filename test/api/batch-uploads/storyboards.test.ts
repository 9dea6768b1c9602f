import { expect, test } from "vitest";
import { testApp } from "#test/support/app.ts";
import { JPEG, leased, tiny, tinyAsset } from "#test/support/batches.ts";

const tile = (uri: string) => `WEBVTT\n\n00:00.000 --> 00:04.000\n${uri}#xywh=0,0,160,90\n`;

const FAULTS: [string, string, string][] = [
  ["a segment", "low/1.m4s", "storyboard_malformed"],
  ["a text of words", "words.vtt", "storyboard_malformed"],
  ["regions of a file that is not an image", "low/storyboard.vtt", "thumbnail_malformed"],
  ["parts of what is not there", "missing.vtt", "object_missing"],
  ["parts of what lies above the batch", "above.vtt", "reference_outside"],
  ["parts of what lies elsewhere", "elsewhere.vtt", "reference_not_relative"],
  ["nothing", "none.vtt", "object_missing"],
];

test("a client's storyboard is checked with its images, and shown by players", async () => {
  const app = await testApp({ rate_limit_uploads: "1000/60" });
  const key = await app.key((await app.tenant()).id);
  const batch = await leased(app, key);
  await batch.putAll({
    ...tiny(),
    "storyboard.vtt": tile("sheets/1.jpg"),
    "sheets/1.jpg": JPEG,
    "words.vtt": "WEBVTT\n\n00:00.000 --> 00:04.000\nHello\n",
    "low/storyboard.vtt": tile("1.m4s"),
    "missing.vtt": tile("sheet.jpg"),
    "above.vtt": tile("../1.jpg"),
    "elsewhere.vtt": tile("https://example.com/1.jpg"),
  });
  for (const [name, storyboard_path, code] of FAULTS) {
    const { body } = await batch.preview({ assets: [tinyAsset("", { storyboard_path })] });
    const told = body.errors.map((fault: { path: string; code: string }) => [fault.path, fault.code]);
    expect(told, name).toEqual([["assets[0].storyboard_path", code]]);
  }
  const asset = tinyAsset("", { storyboard_path: "storyboard.vtt", playback_policy: "public" });
  const committed = await batch.commit({ assets: [asset] });
  expect(committed.status, committed.text).toBe(200);
  const { body: playback } = await app.as(key).getPlayback(committed.body.assets[0].id);
  const shown = await app.call("GET", playback.storyboard_url);
  const sheet = new URL(/^(\S+)#xywh=0,0,160,90$/m.exec(shown.text)?.[1] as string, playback.storyboard_url);
  const picture = await app.call("GET", sheet.href);
  expect([picture.status, picture.headers.get("content-type")]).toEqual([200, "image/jpeg"]);
});
