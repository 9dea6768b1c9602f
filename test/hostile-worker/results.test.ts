import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type TestApp, testApp } from "../support/app.ts";
import { expectError } from "../support/error.ts";
import { callback, putArtifacts, uploaded } from "../support/flow.ts";
import { nextTask, planned, written } from "../support/tasks.ts";
import { completed, leased, MEDIA } from "./lease.ts";

/**
 * A worker has its token and the URLs of its lease, and its program is hostile. What it reports is refused, or has no effect
 * on anything but the asset of its job.
 */

let app: TestApp;
let key: string;
let other: { key: string; contract: any; id: number };
beforeAll(async () => {
  app = await testApp();
  const stranger = await app.key((await app.tenant()).id);
  const { contract, asset } = await completed(app, stranger);
  other = { key: stranger, contract, id: asset.id };
});
// A tenant has a limited number of jobs.
beforeEach(async () => {
  key = await app.key((await app.tenant()).id);
});

const assetOf = async (id: number, own = key) => (await app.as(own).getAsset(id)).body;

/** A value that JSON.stringify cannot write. */
const RAW: Record<string, string> = { "@@infinite@@": "1e999", "@@nan@@": "NaN" };
const raw = (body: unknown) => JSON.stringify(body).replaceAll(/"(@@\w+@@)"/g, (_, name) => RAW[name] as string);
const send = (contract: any, name: string, body: unknown) =>
  app.call("POST", contract.callbacks[`${name}_url`], {
    worker: app.worker,
    lease: contract.lease.token,
    raw: raw(body),
    headers: { "content-type": "application/json" },
  });

const ABSURD: Record<string, unknown> = {
  negative: -1,
  enormous: 1e15,
  "too large for a double in ms": 1e308,
  infinite: "@@infinite@@",
  NaN: "@@nan@@",
  "a text": "1",
  "a list": [1],
};
const rendition = { name: "360p", bandwidth: 1, codecs: "avc1.64001e", playlist_path: "low/playlist.m3u8" };
const ofRendition = (field: string) => (value: unknown) => ({
  media: { ...MEDIA, renditions: [{ ...rendition, [field]: value }] },
});
const ofMedia = (field: string) => (value: unknown) => ({ media: { ...MEDIA, [field]: value } });
const NUMBERS: Record<string, (value: unknown) => object> = Object.fromEntries([
  ...["duration_seconds", "width", "height", "frame_rate"].map((name) => [name, ofMedia(name)] as const),
  ...["width", "height", "bandwidth", "average_bandwidth", "frame_rate", "bytes", "score"].map(
    (name) => [`renditions.${name}`, ofRendition(name)] as const,
  ),
]);

describe("an absurd number in a result is refused", () => {
  for (const [field, fields] of Object.entries(NUMBERS))
    test(field, async () => {
      const { contract, asset } = await leased(app, key);
      const paths = await putArtifacts(app, contract);
      // An exabyte could exist.
      const values = Object.entries(ABSURD).filter(([name]) => !(field.endsWith("bytes") && name === "enormous"));
      for (const [name, value] of values)
        expect([name, (await send(contract, "complete", { ...paths, ...fields(value) })).status]).toEqual([
          name,
          name === "NaN" ? 400 : 422,
        ]);
      expect((await assetOf(asset.id)).playback_status).not.toBe("ready");
      expect((await callback(app, contract, "complete", { ...paths, media: MEDIA })).status).toBe(200);
    });

  test("progress", async () => {
    const { contract } = await leased(app, key);
    for (const [name, progress] of Object.entries(ABSURD))
      expect([name, (await send(contract, "heartbeat", { progress })).status]).toEqual([
        name,
        name === "NaN" ? 400 : 422,
      ]);
  });

  const plans: Record<string, (value: unknown) => object> = {
    duration_seconds: (value) => planned({ duration_seconds: value }),
    segment_seconds: (value) => planned({ segment_seconds: value }),
    "frame_rate.num": (value) => planned({ frame_rate: { num: value, den: 1 } }),
    "frame_rate.den": (value) => planned({ frame_rate: { num: 30, den: value } }),
    "early.segments": (value) =>
      planned({ early: { segments: value, renditions: [{ name: "360p", width: 640, height: 360 }] } }),
  };
  test.each(Object.entries(plans))("of a plan: %s", async (_, fields) => {
    await leasedTask(async (contract) => {
      for (const [name, value] of Object.entries(ABSURD)) {
        // A longer source than this server cuts is encoded in one run, whatever its length.
        const answer = await send(contract, "complete", { plan: fields(value) });
        expect([name, answer.status]).toEqual([name, name === "NaN" ? 400 : 422]);
      }
    });
  });
});

/** Calls `work` with the contract of the `plan` task of a new job, and ends that. */
async function leasedTask(work: (contract: any) => Promise<void>) {
  await uploaded(app, key);
  const { body: contract } = await nextTask(app);
  expect(contract.task.kind).toBe("plan");
  await work(contract);
  const body = { code: "input_invalid", message: "no", retryable: false };
  expect((await callback(app, contract, "fail", body)).status).toBe(200);
}

test("segments that a task was not given are an error of the task", async () => {
  await uploaded(app, key);
  const { body: plan } = await nextTask(app);
  expect((await callback(app, plan, "complete", { plan: planned() })).status).toBe(200);
  const { body: chunk } = await nextTask(app);
  const right = written(chunk);
  const rows: Record<string, unknown> = {
    "a negative size": [[-1, 0, 1, 0, 0]],
    "four numbers": [[1, 0, 1, 0]],
    "a size beyond the safe integers": [[2 ** 60, 0, 1, 0, 0]],
  };
  for (const [name, segments] of Object.entries(rows)) {
    const answer = await callback(app, chunk, "complete", { written: [{ ...right[0], segments }] });
    expect([name, answer.status]).toEqual([name, 422]);
  }
  for (const name of ["../360p", "", ".", "a/b", "<b>", "\u001b[2J"])
    expect([name, (await callback(app, chunk, "complete", { written: [{ ...right[0], name }] })).status]).toEqual([
      name,
      422,
    ]);
});

describe("keys that are not of the attempt are refused", () => {
  const FIELDS = ["manifest_path", "dash_manifest_path", "thumbnail_path", "storyboard_path", "mp4_path"];
  const foreign = (contract: any): Record<string, string> => {
    const { prefix } = contract.outputs;
    return {
      "of another tenant": other.contract.outputs.manifest_path,
      "of another tenant, by dots": `${prefix}../../../../../${other.contract.outputs.manifest_path}`,
      "of another attempt": `${prefix.replace(/-(\d+)\/$/, "-999/")}master.m3u8`,
      "of the asset": prefix.replace(/[^/]+\/$/, "master.m3u8"),
      "the prefix without its slash": `${prefix.slice(0, -1)}0/master.m3u8`,
      "of the host": "/etc/passwd",
      "by another protocol": "file:///etc/passwd",
      "an empty part": `${prefix}/master.m3u8`,
    };
  };

  test.each(FIELDS)("%s", async (field) => {
    const { contract } = await leased(app, key);
    const paths = await putArtifacts(app, contract);
    for (const [about, path] of Object.entries(foreign(contract))) {
      const answer = await callback(app, contract, "complete", { ...paths, media: MEDIA, [field]: path });
      expectError(answer, 422, "invalid_transcoding_result", about);
    }
  });

  test("subtitle_paths", async () => {
    const { contract } = await leased(app, key);
    const paths = await putArtifacts(app, contract);
    for (const [about, path] of Object.entries(foreign(contract))) {
      const fields = { ...paths, media: MEDIA, subtitle_paths: { en: path } };
      expectError(await callback(app, contract, "complete", fields), 422, "invalid_transcoding_result", about);
    }
  });

  test.each(["renditions", "audio_renditions"])("%s.playlist_path", async (field) => {
    const { contract } = await leased(app, key);
    const paths = await putArtifacts(app, contract);
    for (const [about, playlist_path] of Object.entries(foreign(contract))) {
      const media = { ...MEDIA, [field]: [{ ...rendition, playlist_path }] };
      expectError(
        await callback(app, contract, "complete", { ...paths, media }),
        422,
        "invalid_transcoding_result",
        about,
      );
    }
  });

  test.each(["PUT", "GET"])("of a URL to %s", async (method) => {
    const { contract } = await leased(app, key);
    for (const [about, path] of Object.entries(foreign(contract))) {
      const answer = await app.call("POST", contract.artifacts.sign_url, {
        worker: app.worker,
        lease: contract.lease.token,
        body: { paths: [path], method },
      });
      expectError(answer, 422, "validation_failed", about);
    }
  });
});

describe("a manifest that leads away is refused", () => {
  const OUTSIDE: Record<string, () => string> = {
    "another site": () => "https://attacker.example/a",
    "another site, with the protocol of the page": () => "//attacker.example/a",
    "another protocol": () => "javascript:alert(1)",
    "data in the reference": () => "data:text/html,<script>alert(1)</script>",
    "the root of this site": () => "/media/1/a",
    "another asset": () => `../../${other.id}/1-1/a`,
    "another version": () => "../../other/a",
    "another asset, escaped": () => "%2e%2e/%2e%2e/a",
    "a backslash": () => "\\\\attacker.example\\a",
  };
  const mpd = (inner: string) =>
    `<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT4S">${inner}</MPD>`;
  const represented = (inner: string) =>
    `<Period><AdaptationSet mimeType="video/mp4"><Representation id="1" bandwidth="1">${inner}</Representation></AdaptationSet></Period>`;
  const DOCUMENTS: Record<string, (uri: string) => Record<string, string>> = {
    "a variant": (uri) => ({ "master.m3u8": `#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\n${uri}\n` }),
    "an audio group": (uri) => ({
      "master.m3u8": `#EXTM3U\n#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="a",URI="${uri}"\n#EXT-X-STREAM-INF:BANDWIDTH=1,AUDIO="a"\nlow/playlist.m3u8\n`,
    }),
    "a session key": (uri) => ({
      "master.m3u8": `#EXTM3U\n#EXT-X-SESSION-KEY:METHOD=AES-128,URI="${uri}"\n#EXT-X-STREAM-INF:BANDWIDTH=1\nlow/playlist.m3u8\n`,
    }),
    "a segment": (uri) => ({ "low/playlist.m3u8": `#EXTM3U\n#EXTINF:4,\n${uri}\n#EXT-X-ENDLIST\n` }),
    "an init segment": (uri) => ({
      "low/playlist.m3u8": `#EXTM3U\n#EXT-X-MAP:URI="${uri}"\n#EXTINF:4,\n1.m4s\n#EXT-X-ENDLIST\n`,
    }),
    "a key": (uri) => ({
      "low/playlist.m3u8": `#EXTM3U\n#EXT-X-KEY:METHOD=AES-128,URI="${uri}"\n#EXTINF:4,\n1.m4s\n#EXT-X-ENDLIST\n`,
    }),
    "a base URL": (uri) => ({
      "manifest.mpd": mpd(`<BaseURL>${uri}</BaseURL>${represented("<BaseURL>a.mp4</BaseURL><SegmentBase/>")}`),
    }),
    "the base URL of a representation": (uri) => ({
      "manifest.mpd": mpd(represented(`<BaseURL>${uri}</BaseURL><SegmentBase/>`)),
    }),
    "a template": (uri) => ({
      "manifest.mpd": mpd(represented(`<SegmentTemplate media="${uri}" startNumber="1" duration="4"/>`)),
    }),
    "a storyboard": (uri) => ({
      "storyboard.vtt": `WEBVTT\n\n00:00:00.000 --> 00:00:04.000\n${uri}#xywh=0,0,160,90\n`,
    }),
  };
  describe.each(Object.keys(DOCUMENTS))("%s", (document) => {
    test.each(Object.keys(OUTSIDE))("%s", async (about) => {
      const objects = (DOCUMENTS[document] as (uri: string) => Record<string, string>)(
        (OUTSIDE[about] as () => string)(),
      );
      const { answer, asset } = await completed(app, key, { objects });
      expectError(answer, 422, "invalid_transcoding_result", about);
      expect((await assetOf(asset.id)).playback_status).not.toBe("ready");
    });
  });

  test.each(Object.keys(DOCUMENTS))("%s within the attempt is published", async (document) => {
    const objects = (DOCUMENTS[document] as (uri: string) => Record<string, string>)("low/sub/../playlist.m3u8");
    expect((await completed(app, key, { objects })).answer.status).toBe(200);
  });

  test("elements that redirect a DASH player are refused", async () => {
    for (const element of ["Location", "PatchLocation", "ContentSteering"]) {
      const text = mpd(`<${element}>https://attacker.example/</${element}><Period></Period>`);
      const { answer } = await completed(app, key, { objects: { "manifest.mpd": text } });
      expectError(answer, 422, "invalid_transcoding_result", element);
    }
  });

  test("lines that redirect an HLS player are refused", async () => {
    for (const tag of ["CONTENT-STEERING:SERVER-URI", "DEFINE:QUERYPARAM"]) {
      const text = `#EXTM3U\n#EXT-X-${tag}="https://attacker.example/"\n#EXT-X-STREAM-INF:BANDWIDTH=1\nlow/playlist.m3u8\n`;
      const { answer } = await completed(app, key, { objects: { "master.m3u8": text } });
      expectError(answer, 422, "invalid_transcoding_result", tag);
    }
  });
});
