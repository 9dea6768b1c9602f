import HLS from "hls-parser";
import { beforeAll, beforeEach, expect, test } from "vitest";
import { graceAfterStart } from "#features/transcoding/recover.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { next, readyAsset } from "#test/support/flow.ts";

let app: TestApp;
let key: string;
let asset: { id: number; external_id: string };
beforeAll(async () => {
  app = await testApp({ rate_limit_uploads: "100000/60" });
});
beforeEach(async () => {
  key = await app.key((await app.tenant()).id);
  ({ asset } = await readyAsset(app, key, { playback_policy: "public" }));
});

const path = () => `/api/v1/assets/${asset.id}/audio_tracks`;
function form(fields: Record<string, string>, file: string | null = "not really audio") {
  const data = new FormData();
  for (const [name, value] of Object.entries(fields)) data.append(name, value);
  if (file !== null) data.append("file", new Blob([file]), "dub.wav");
  return data;
}
const FIELDS = { language: "de", name: "Deutsch", role: "dub" };
const add = (fields: Record<string, string> = FIELDS) => app.as(key).createAudioTrack(asset.id, form(fields));
const list = async () => (await app.as(key).listAudioTracks(asset.id)).body;
const storedBytes = async () => (await app.as(key).getAsset(asset.id)).body.storage_bytes;

const PLAYLIST = `#EXTM3U
#EXT-X-VERSION:7
#EXT-X-TARGETDURATION:4
#EXT-X-MAP:URI="init.mp4"
#EXTINF:4.0,
00001.m4s
#EXTINF:2.0,
00002.m4s
#EXT-X-ENDLIST
`;
const MPD = `<MPD><Period><AdaptationSet><Representation id="audio" bandwidth="96000" codecs="mp4a.40.2" audioSamplingRate="48000">
<SegmentTemplate timescale="48000"><SegmentTimeline><S t="0" d="192000"/><S t="192000" d="96000"/></SegmentTimeline></SegmentTemplate>
</Representation></AdaptationSet></Period></MPD>`;
const FILES = {
  "audio/init.mp4": "init",
  "audio/00001.m4s": "first",
  "audio/00002.m4s": "second",
  "audio/playlist.m3u8": PLAYLIST,
  "manifest.mpd": MPD,
};

type Contract = Awaited<ReturnType<typeof next>>["body"];
const callback = (contract: Contract, url: string, body: unknown = {}) =>
  app.call("POST", url, {
    worker: app.worker,
    headers: { "x-svc-job-lease-token": contract.lease.token },
    body,
  });
async function write(contract: Contract, files: Record<string, string> = FILES) {
  const paths = Object.keys(files).map((file) => contract.outputs.prefix + file);
  const { body: signed } = await callback(contract, contract.artifacts.sign_url, { paths });
  const puts: number[] = [];
  for (const [index, text] of Object.values(files).entries())
    puts.push((await app.call("PUT", signed[index].url, { raw: text, headers: signed[index].headers })).status);
  return puts;
}
async function encoded(fields: Record<string, string> = FIELDS) {
  const { body } = await add(fields);
  const { body: contract } = await next(app);
  await write(contract);
  expect((await callback(contract, contract.callbacks.complete_url)).status).toBe(200);
  return body;
}

test("an added track is encoded by a worker, and listed and played by name; its bytes count", async () => {
  const before = await storedBytes();
  const { status, body } = await add({ ...FIELDS, is_default: "true" });
  expect([status, body]).toMatchObject([
    201,
    { language: "de", name: "Deutsch", role: "dub", status: "processing", is_default: false, source: "upload" },
  ]);
  expect(await storedBytes()).toBe(before + 16);
  const { body: contract } = await next(app);
  expect(contract).toMatchObject({
    job: { asset_id: asset.id, profile: "audio" },
    source: { bytes: 16 },
    encoding_spec: { video: { enabled: false }, audio: { max_tracks: 1 } },
  });
  const { body: shown } = await app.as(key).getAsset(asset.id);
  expect(contract.encoding_spec.audio.length_seconds).toBe(shown.duration_seconds);
  expect((await callback(contract, contract.callbacks.heartbeat_url, { progress: 5 })).body.status).toBe("running");
  expect(await write(contract)).toEqual([200, 200, 200, 200, 200]);
  const done = await callback(contract, contract.callbacks.complete_url);
  expect([done.status, done.body.status]).toEqual([200, "ready"]);
  expect((await callback(contract, contract.callbacks.complete_url)).body.code).toBe("stale_lease");
  const rows = await list();
  expect(rows.at(-1)).toMatchObject({ id: body.id, status: "ready", is_default: true });
  const bytes = Object.values(FILES).reduce((sum, text) => sum + text.length, 0);
  expect([rows.at(-1)?.bytes, await storedBytes()]).toEqual([bytes, before + bytes]);

  const master = `http://vodbox.test/media/${asset.external_id}/master.m3u8`;
  const { text } = await app.call("GET", master);
  const line = text.split("\n").find((one) => one.includes('NAME="Deutsch"')) as string;
  expect(line).toMatch(/LANGUAGE="de",DEFAULT=YES,AUTOSELECT=YES,CHANNELS="2",URI="audio-tracks\//);
  HLS.parse(text);
  const playlist = new URL(/URI="([^"]+)"/.exec(line)?.[1] as string, master).href;
  expect((await app.call("GET", playlist)).text).toBe(PLAYLIST);
  const segment = await app.call("GET", new URL("00002.m4s", playlist).href);
  expect([segment.status, segment.text]).toEqual([200, "second"]);
  expect(segment.headers.get("cache-control")).toMatch(/immutable/);
  const { text: mpd } = await app.call("GET", `/media/${asset.external_id}/manifest.mpd`);
  expect(mpd).toContain(`<Representation id="added-audio-${body.id}" bandwidth="96000" codecs="mp4a.40.2"`);
  expect(mpd).toMatch(/<Label>Deutsch<\/Label><Role [^>]*value="main"\/><Role [^>]*value="dub"\/>/);

  expect((await app.as(key).deleteAudioTrack(asset.id, body.id)).status).toBe(409);
  await encoded({ language: "en", name: "Described", role: "description" });
  const both = (await app.call("GET", master)).text;
  expect(both).toMatch(/NAME="Described".*CHARACTERISTICS="public.accessibility.describes-video"/);
  const described = (await app.call("GET", `/media/${asset.external_id}/manifest.mpd`)).text;
  expect(described).toMatch(/<Accessibility schemeIdUri="urn:tva:[^>]*value="1"\/><Role [^>]*value="description"\/>/);
  expect((await app.as(key).deleteAudioTrack(asset.id, body.id)).status).toBe(204);
  expect((await app.call("GET", master)).text).not.toContain("Deutsch");
  expect((await app.call("GET", playlist)).status).toBe(404);
  const last = (await list()).at(-1);
  expect(last).toMatchObject({ name: "Described", is_default: true });
});

test("a repeat with its Idempotency-Key adds no second track", async () => {
  const repeated = () =>
    app.as({ key, headers: { "idempotency-key": "once" } }).createAudioTrack(asset.id, form(FIELDS));
  const before = (await list()).length;
  const [first, again] = [await repeated(), await repeated()];
  expect([first.status, again.status], first.text).toEqual([201, 201]);
  expect(again.body).toEqual(first.body);
  for (const raw of [form({ ...FIELDS, language: "fr" }), form(FIELDS, "another length")])
    expectError(
      await app.call("POST", path(), { key, raw, headers: { "idempotency-key": "once" } }),
      422,
      "idempotency_key_reused",
    );
  expect(await list()).toHaveLength(before + 1);
  await app.as(key).deleteAudioTrack(asset.id, first.body.id);
});

test("a track can be labeled and made the default", async () => {
  const first = await encoded();
  const second = await encoded({ language: "en", name: "Comments", role: "commentary" });
  const fields = { name: 'Comments "of" <them>', language: "en-us", role: "alternate", is_default: true };
  const { status, body } = await app.as(key).updateAudioTrack(asset.id, second.id, fields);
  expect([status, body]).toMatchObject([200, { ...fields, language: "en-US" }]);
  const defaults = (await list()).filter((one: { is_default: boolean }) => one.is_default);
  expect(defaults.map(({ id }: { id: number }) => id)).toEqual([second.id]);
  const { text } = await app.call("GET", `/media/${asset.external_id}/master.m3u8`);
  expect(text.match(/DEFAULT=YES/g)).toHaveLength(1);
  expect(text).toContain('NAME="Comments ”of” <them>",LANGUAGE="en-US",DEFAULT=YES');
  for (const bad of [{ language: "!" }, { role: "x" }, { name: " " }, { is_default: "yes" }])
    expect.soft((await app.as(key).unchecked.updateAudioTrack(asset.id, first.id, bad)).status).toBe(422);
});

test("a restart of the server renews a lease that expired meanwhile", async () => {
  await add();
  const { body: leased } = await next(app);
  app.advance(10 * 60_000);
  await graceAfterStart(app.opened.app);
  expect((await next(app)).status).toBe(204);
  await write(leased);
  expect((await callback(leased, leased.callbacks.complete_url)).status).toBe(200);
});

test("a failed attempt is repeated, and a file at fault is not; the asset plays on", async () => {
  const { body } = await add();
  const { body: lost } = await next(app);
  app.advance(10 * 60_000);
  expect((await callback(lost, lost.callbacks.complete_url)).body.code).toBe("stale_lease");
  const { body: again } = await next(app);
  expect([again.job.attempt, again.outputs.prefix === lost.outputs.prefix]).toEqual([2, false]);
  // Nothing, and something else than what the manifests list.
  const refused = await callback(again, again.callbacks.complete_url);
  expect([refused.status, refused.body.code]).toEqual([422, "invalid_transcoding_result"]);
  await write(again, { ...FILES, "audio/playlist.m3u8": `${PLAYLIST}../../../secret\n` });
  expect((await callback(again, again.callbacks.complete_url)).body.code).toBe("invalid_transcoding_result");
  await callback(again, again.callbacks.release_url);
  const { body: third } = await next(app);
  expect(third.job.attempt).toBe(2);
  const fault = { code: "input_invalid", message: "The source has no audio.", retryable: false };
  await callback(third, third.callbacks.fail_url, fault);
  expect((await list()).at(-1)).toMatchObject({
    id: body.id,
    status: "failed",
    bytes: 0,
    error: { code: "input_invalid", message: "The source has no audio." },
  });
  const { body: shown } = await app.as(key).getAsset(asset.id);
  expect([shown.playback_status, shown.error]).toEqual(["ready", null]);
  expect((await next(app)).status).toBe(204);
  const foreign = await callback(third, third.artifacts.sign_url, { paths: ["tenants/1/x"] });
  expect(foreign.status).toBe(409);
});

test("invalid requests are refused, and leave nothing", async () => {
  const before = await storedBytes();
  const cases: [Record<string, string>, string | null, string][] = [
    [{ name: "x" }, "a", "parameter_missing"],
    [{ language: "de" }, "a", "parameter_missing"],
    [FIELDS, null, "parameter_missing"],
    [FIELDS, "", "validation_failed"],
    [{ ...FIELDS, language: "!" }, "a", "invalid_language"],
    [{ ...FIELDS, role: "x" }, "a", "validation_failed"],
    [{ ...FIELDS, name: "x".repeat(201) }, "a", "validation_failed"],
  ];
  for (const [fields, file, code] of cases) {
    const answer = await app.as(key).createAudioTrack(asset.id, form(fields, file));
    expect.soft([answer.status, answer.error.code], JSON.stringify(fields)).toEqual([422, code]);
  }
  expect((await app.as(key).unchecked.createAudioTrack(asset.id, FIELDS)).status).toBe(415);
  const draft = await app.as(key).initiateUpload({ filename: "a.mp4", bytes_expected: 1 });
  const answer = await app.as(key).createAudioTrack(draft.body.asset_id, form(FIELDS));
  expect([answer.status, answer.error.code]).toEqual([422, "asset_not_ready"]);
  const other = await app.key((await app.tenant()).id);
  expect((await app.as(other).createAudioTrack(asset.id, form(FIELDS))).status).toBe(404);
  expect((await app.as(other).listAudioTracks(asset.id)).status).toBe(404);
  expect(await storedBytes()).toBe(before);
});

test("the default track cannot be left without another one", async () => {
  const set = (id: number, isDefault: boolean) =>
    app.call("PATCH", `${path()}/${id}`, { key, body: { is_default: isDefault } });
  const { id } = await encoded({ ...FIELDS, is_default: "true" });
  expectError(await set(id, false), 422, "validation_failed");
  // What it is already may be stated.
  expect((await set(id, true)).status).toBe(200);
  // One that is being encoded is to become the default, and then not.
  const { body: waiting } = await add({ ...FIELDS, is_default: "true" });
  expect((await set(waiting.id, false)).status).toBe(200);
  await app.call("DELETE", `${path()}/${waiting.id}`, { key });
  const other = await encoded({ language: "en", name: "English" });
  expect([(await set(other.id, true)).status, (await set(id, false)).status]).toEqual([200, 200]);
  expect((await list()).filter((one: { is_default: boolean }) => one.is_default)).toMatchObject([{ id: other.id }]);
});
