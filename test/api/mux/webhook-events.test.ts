import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type Mux from "@mux/mux-node";
import { beforeEach, expect, test } from "vitest";
import { simulcastReports } from "#features/live/simulcast/reports.ts";
import { permitPublish } from "#features/live/streams/permit.ts";
import { endStream, insertStream } from "#features/live/streams/rows.ts";
import { startFetches } from "#features/uploads/fetches.ts";
import type { OpenedStream } from "#live/ingest/messages.ts";
import { ALL_MUX_NAMES } from "#platform/events/mux-names.ts";
import type { TestApp } from "#test/support/app.ts";
import { readyAsset, uploaded } from "#test/support/flow.ts";
import { atEnd } from "#test/support/folder.ts";
import { muxReceiver } from "#test/support/mux/receiver.ts";
import { eventFaults } from "#test/support/mux/shapes.ts";
import type { Receiver } from "#test/support/receiver.ts";
import { subtitled } from "#test/support/subtitles.ts";

let app: TestApp;
let key: string;
let mux: Mux;
let secret: string;
let there: Receiver;

beforeEach(async () => {
  ({ app, key, mux, there } = await muxReceiver());
  const { body } = await app.as(key).createWebhook({ url: there.url, format: "mux" });
  secret = body.secret as string;
});

type Delivered = { type: string; id: string; object: { type: string; id: string }; data: Record<string, unknown> };

/** What has been delivered since the last call, in order, as Mux's client verifies it and its types say. */
async function delivered(): Promise<Delivered[]> {
  await app.runTask("deliver-webhooks");
  const all: Delivered[] = [];
  for (const { body, headers, json } of there.received.splice(0)) {
    await mux.webhooks.unwrap(body, headers as Record<string, string>, secret);
    expect(eventFaults(json)).toEqual([]);
    expect(Object.keys(json).toSorted()).toEqual(
      "accessor accessor_source attempts created_at data environment id object request_id type".split(" "),
    );
    all.push(json);
  }
  return all.toSorted((a, b) => a.type.localeCompare(b.type));
}
const named = (events: readonly Delivered[]) => events.map(({ type, object }) => `${type} ${object.type} ${object.id}`);

test("an asset is created, updated and deleted", async () => {
  const { asset } = await readyAsset(app, key, { playback_policy: "public" });
  const id = String(asset.id);
  const first = await delivered();
  expect(named(first)).toEqual([`video.asset.created asset ${id}`, `video.asset.ready asset ${id}`]);
  expect(first[1]?.data.created_at).toBe(Number((await mux.video.assets.retrieve(id)).created_at));
  await mux.video.assets.update(id, { meta: { title: "Another" }, passthrough: "mine" });
  const [changed, ...more] = await delivered();
  expect(more).toEqual([]);
  expect(changed).toMatchObject({
    type: "video.asset.updated",
    data: { passthrough: "mine", meta: { title: "Another" } },
  });
  const { id: other } = await mux.video.assets.createPlaybackId(id, { policy: "signed" });
  await mux.video.assets.deletePlaybackId(id, other);
  await app.as(key).updateTags(asset.id, { season: "summer" });
  const updated = `video.asset.updated asset ${id}`;
  expect(named(await delivered())).toEqual([updated, updated, updated]);
  await mux.video.assets.delete(id);
  expect(named(await delivered())).toEqual([`video.asset.deleted asset ${id}`]);
});

test("static renditions and the master are announced when they are ready", async () => {
  const pending = await uploaded(app, key, {});
  const waiting = String(pending.asset.id);
  await delivered();
  await mux.video.assets.createStaticRendition(waiting, { resolution: "highest" });
  await mux.video.assets.updateMasterAccess(waiting, { master_access: "temporary" });
  expect((await delivered()).map(({ type }) => type)).toEqual([
    "video.asset.master.preparing",
    "video.asset.static_rendition.created",
    "video.asset.static_renditions.preparing",
  ]);
  await app.as({ admin: app.admin }).cancelJob(pending.job.id);
  expect((await delivered()).map(({ type }) => type)).toEqual([
    "video.asset.errored",
    "video.asset.master.errored",
    "video.asset.static_rendition.errored",
    "video.asset.static_renditions.errored",
  ]);

  const { asset } = await readyAsset(app, key);
  const id = String(asset.id);
  await delivered();
  await mux.video.assets.updateMP4Support(id, { mp4_support: "standard" });
  const created = await delivered();
  expect(created.map(({ type }) => type)).toEqual([
    ...Array(3).fill("video.asset.static_rendition.created"),
    ...Array(3).fill("video.asset.static_rendition.ready"),
    "video.asset.static_renditions.ready",
  ]);
  const files = created.slice(3, 6).map(({ data }) => `${data.asset_id} ${data.name}`);
  expect(files.toSorted()).toEqual([`${id} high.mp4`, `${id} low.mp4`, `${id} medium.mp4`]);
  await mux.video.assets.updateMP4Support(id, { mp4_support: "none" });
  expect((await delivered()).map(({ type }) => type)).toEqual([
    ...Array(3).fill("video.asset.static_rendition.deleted"),
    "video.asset.static_renditions.deleted",
  ]);
  const made = await mux.video.assets.createStaticRendition(id, { resolution: "2160p" });
  const skipped = await delivered();
  expect(named(skipped)).toContain(`video.asset.static_rendition.skipped static_rendition ${made.id}`);
  expect(skipped[1]?.data).toMatchObject({ id: made.id, asset_id: id, status: "skipped", resolution: "2160p" });
  await mux.video.assets.updateMasterAccess(id, { master_access: "temporary" });
  const [ready] = await delivered();
  expect(ready).toMatchObject({ type: "video.asset.master.ready", data: { id, master_access: "temporary" } });
  expect(JSON.stringify(ready)).not.toContain("http");
  await mux.video.assets.updateMasterAccess(id, { master_access: "none" });
  expect(named(await delivered())).toEqual([`video.asset.master.deleted asset ${id}`]);
});

test("tracks are created and deleted", async () => {
  const { asset } = await readyAsset(app, key);
  const id = String(asset.id);
  await delivered();
  const track = await subtitled(app, key, asset.id);
  const events = await delivered();
  expect(named(events)).toEqual([
    `video.asset.track.created track ${track.id}`,
    `video.asset.track.ready track ${track.id}`,
  ]);
  await mux.video.assets.deleteTrack(id, String(track.id));
  expect((await delivered()).map(({ type, data }) => [type, data.status, data.asset_id])).toEqual([
    ["video.asset.track.deleted", "deleted", id],
  ]);
});

test("a direct upload is created, canceled, and creates its asset", async () => {
  const canceled = await mux.video.uploads.create({ cors_origin: "*", new_asset_settings: { passthrough: "p" } });
  const [created] = await delivered();
  expect(created).toMatchObject({
    type: "video.upload.created",
    object: { type: "upload", id: canceled.id },
    data: { id: canceled.id, status: "waiting", new_asset_settings: { passthrough: "p" } },
  });
  expect(created?.data).not.toHaveProperty("url");
  await mux.video.uploads.cancel(canceled.id);
  expect(named(await delivered())).toEqual([`video.upload.cancelled upload ${canceled.id}`]);

  const upload = await mux.video.uploads.create({ cors_origin: "*" });
  await delivered();
  const raw = "not really a video";
  await app.call("PUT", upload.url as string, { raw, headers: { "content-length": String(raw.length) } });
  const { asset_id } = await mux.video.uploads.retrieve(upload.id);
  const events = await delivered();
  expect(named(events)).toEqual([
    `video.asset.created asset ${asset_id}`,
    `video.upload.asset_created upload ${upload.id}`,
  ]);
  expect(events[1]?.data).toMatchObject({ asset_id, status: "asset_created" });
});

test("an asset whose URL cannot be fetched is errored", async () => {
  const site = createServer((_, response) => response.writeHead(404).end()).listen(0, "127.0.0.1");
  await once(site, "listening");
  atEnd(async () => void site.close());
  const url = `http://127.0.0.1:${(site.address() as AddressInfo).port}/film.mp4`;
  const asset = await mux.video.assets.create({ inputs: [{ url }] });
  await Promise.all(await startFetches(app.opened.app));
  expect((await mux.video.assets.retrieve(asset.id)).status).toBe("errored");
  expect((await mux.video.assets.retrieve(asset.id)).errors?.messages).toHaveLength(1);
  const events = await delivered();
  expect(named(events)).toEqual([`video.asset.created asset ${asset.id}`, `video.asset.errored asset ${asset.id}`]);
  expect(events[1]?.data).toMatchObject({ id: asset.id, status: "errored", progress: { state: "errored" } });
});

test("a live stream and its simulcast targets", async () => {
  const { liveStreams } = mux.video;
  const stream = await liveStreams.create({ playback_policies: ["public"] });
  await liveStreams.update(stream.id, { meta: { title: "Stage" } });
  const target = await liveStreams.createSimulcastTarget(stream.id, { url: "rtmp://a.example.com/x/key" });
  expect(named(await delivered())).toEqual([
    `video.live_stream.created live ${stream.id}`,
    `video.live_stream.simulcast_target.created simulcast-target ${target.id}`,
    `video.live_stream.updated live ${stream.id}`,
  ]);
  const channel = (await app.as(key).getChannel(stream.id)).body;
  await app.as(key).updateSimulcastTarget(stream.id, target.id as string, { name: "Elsewhere" });
  const reports = simulcastReports(app.opened.app);
  const report = async (status: "connecting" | "live" | "failed" | null) => {
    const state = { id: Number(target.id), sinceMs: 1, error: status === "failed" ? "Refused" : null };
    reports.receive({
      channelId: channel.id,
      tenantId: channel.tenant_id,
      sentBytes: 0,
      failures: 0,
      targets: status === null ? null : [{ ...state, status, sentBytes: 0, droppedFrames: 0 }],
    });
    await reports.idle();
    return (await delivered()).map(({ type, data }) => `${type.split(".").at(-1)} ${data.status}`);
  };
  expect((await delivered()).map(({ type }) => type)).toEqual(["video.live_stream.simulcast_target.updated"]);
  expect(await report("connecting")).toEqual(["starting starting"]);
  expect(await report("live")).toEqual(["broadcasting broadcasting"]);
  expect(await report("failed")).toEqual(["errored errored"]);
  expect(await report("connecting")).toEqual([]);
  expect(await report("failed")).toEqual([]);
  expect(await report("live")).toEqual(["broadcasting broadcasting"]);
  expect(await report(null)).toEqual(["idle idle"]);
  await liveStreams.deleteSimulcastTarget(stream.id, target.id as string);
  expect((await delivered()).map(({ type }) => type)).toEqual(["video.live_stream.simulcast_target.deleted"]);

  const { app: server } = app.opened;
  const at = { app: "app", name: stream.stream_key, query: "", address: "127.0.0.1" };
  const permit = await permitPublish(server, at);
  if (!permit.accepted) throw new Error("The publisher is refused.");
  await insertStream(server, { name: "one", channel: permit.channel, startedAtMs: 1 } as OpenedStream, null);
  await endStream(server, "one", 2);
  const events = await delivered();
  const state = ({ type, data }: Delivered) => `${type.split(".").at(-1)} ${data.status} ${data.connected}`;
  expect(events.map(state)).toEqual([
    "active active true",
    "connected active true",
    "disconnected idle false",
    "idle idle false",
    "recording active true",
  ]);
  expect(new Set(events.map(({ id }) => id)).size).toBe(events.length);
  await liveStreams.disable(stream.id);
  await liveStreams.enable(stream.id);
  await liveStreams.delete(stream.id);
  expect((await delivered()).map(({ type, data }) => `${type.split(".").at(-1)} ${data.status}`)).toEqual([
    "deleted idle",
    "disabled disabled",
    "enabled idle",
  ]);
});

test("every event has a test delivery of Mux's type, also when its object is gone", async () => {
  for (const name of ALL_MUX_NAMES) {
    const { body } = await app.as(key).createWebhook({ url: there.url, format: "mux", event_types: [name] });
    expect(body.event_types).toEqual([name]);
    await app.as(key).testWebhook(body.id);
    await app.runTask("deliver-webhooks");
    const events = there.received.splice(0).map(({ json }) => json);
    expect(events.map(({ type }) => type)).toEqual([name]);
    expect([name, eventFaults(events[0])]).toEqual([name, []]);
    await app.as(key).deleteWebhook(body.id);
  }
});

test("only an endpoint that names an event of a detail has it stored", async () => {
  const { body: own } = await app.as(key).createWebhook({ url: there.url });
  const { asset } = await readyAsset(app, key);
  await app.runTask("deliver-webhooks");
  const types = async () => {
    const { body } = await app.as(key).listDeliveries(own.id);
    return body.map(({ event }: { event: string }) => event);
  };
  expect(await types()).not.toContain("video.asset.created");
  await app.as(key).updateWebhook(own.id, { event_types: ["video.asset.updated"] });
  await mux.video.assets.update(String(asset.id), { passthrough: "x" });
  expect(await types()).toContain("video.asset.updated");
});
