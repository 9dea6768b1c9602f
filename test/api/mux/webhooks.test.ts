import type Mux from "@mux/mux-node";
import { beforeEach, describe, expect, test } from "vitest";
import type { TestApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { encodedNext, readyAsset, uploaded } from "#test/support/flow.ts";
import { muxReceiver } from "#test/support/mux/receiver.ts";
import { type Receiver, receiver } from "#test/support/receiver.ts";
import { subtitled } from "#test/support/subtitles.ts";

let app: TestApp;
let key: string;
let mux: Mux;
let there: Receiver;
beforeEach(async () => {
  ({ app, key, mux, there } = await muxReceiver());
});
const create = (fields: object) => app.as(key).createWebhook({ url: there.url, ...fields });

describe("an endpoint with Mux's format", () => {
  test("receives Mux's events, which its client verifies", async () => {
    const { body: endpoint } = await create({ format: "mux" });
    const { asset } = await readyAsset(app, key, { title: "Holiday", tags: { passthrough: "p" } });
    await subtitled(app, key, asset.id);
    await app.runTask("deliver-webhooks");
    const id = String(asset.id);
    const events = await Promise.all(
      there.received.map(({ body, headers }) =>
        mux.webhooks.unwrap(body, headers as Record<string, string>, endpoint.secret),
      ),
    );
    expect(events.map(({ type }) => type).toSorted()).toEqual([
      "video.asset.created",
      "video.asset.ready",
      "video.asset.track.created",
      "video.asset.track.ready",
    ]);
    const ready = events.find(({ type }) => type === "video.asset.ready");
    expect(ready).toMatchObject({
      object: { type: "asset", id },
      environment: { name: "vodbox" },
      attempts: [],
      data: { id, status: "ready", meta: { title: "Holiday" }, passthrough: "p" },
    });
    expect(ready?.id).toMatch(/^evt_/);
    const track = events.find(({ type }) => type === "video.asset.track.ready");
    expect(track?.data).toMatchObject({ type: "text", language_code: "en", asset_id: id });
    expect(there.received[0]?.headers["svc-signature"]).toBeUndefined();
    there.received.length = 0;
    await app.as(key).deleteAsset(asset.id);
    await app.runTask("deliver-webhooks");
    expect(there.received.map(({ json }) => [json.type, json.object, json.data.id])).toEqual([
      ["video.asset.deleted", { type: "asset", id }, id],
    ]);
    const [sent] = (await app.as(key).listDeliveries(endpoint.id)).body;
    const details = await app.as(key).getDelivery(endpoint.id, sent.id);
    expect(JSON.parse(details.body.request.body)).toMatchObject({ type: "video.asset.deleted" });
    await app.as(key).testWebhook(endpoint.id);
    await app.runTask("deliver-webhooks");
    expect(there.received.at(-1)?.json).toMatchObject({ type: "video.asset.ready", data: { id: "0" } });
  });

  test("receives an event of their own for direct uploads", async () => {
    await create({ format: "mux", event_types: ["video.upload.asset_created"] });
    const upload = await mux.video.uploads.create({ cors_origin: "*" });
    const raw = "not really a video";
    await app.call("PUT", upload.url as string, { raw, headers: { "content-length": String(raw.length) } });
    await app.runTask("deliver-webhooks");
    expect(there.received.map(({ json }) => [json.type, json.object.id, json.data.status])).toEqual([
      ["video.upload.asset_created", upload.id, "asset_created"],
    ]);
  });

  test("receives what happens to a live stream", async () => {
    const names = ["created", "disabled", "enabled", "deleted"].map((name) => `video.live_stream.${name}`);
    await create({ format: "mux", event_types: names });
    const stream = await mux.video.liveStreams.create({ playback_policies: ["public"] });
    const { liveStreams } = mux.video;
    const steps = [
      async () => {},
      () => liveStreams.disable(stream.id),
      () => liveStreams.enable(stream.id),
      () => liveStreams.delete(stream.id),
    ];
    for (const step of steps) {
      await step();
      await app.runTask("deliver-webhooks");
    }
    const object = { type: "live", id: stream.id };
    expect(there.received.map(({ json }) => [json.type, json.object, json.data.status])).toEqual(
      names.map((name) => [name, object, name.endsWith("disabled") ? "disabled" : "idle"]),
    );
    expect(there.received.every(({ json }) => json.data.id === stream.id && json.data.stream_key === "")).toBe(true);
    there.received.length = 0;
    // What changes nothing is no event.
    const other = await mux.video.liveStreams.create({ playback_policies: ["public"] });
    await liveStreams.enable(other.id);
    await app.as(key).revokeChannel(other.id);
    await app.as(key).revokeChannel(other.id);
    await app.runTask("deliver-webhooks");
    expect(there.received.map(({ json }) => json.type).toSorted()).toEqual([names[0], names[3]].toSorted());
  });

  test("receives what it names of two events for one of ours, each with an id of its own", async () => {
    const [first, second] = ["video.asset.ready", "video.asset.master.ready"];
    await create({ format: "mux", event_types: [second] });
    const firstOnly = await receiver();
    await create({ url: firstOnly.url, format: "mux", event_types: [first] });
    const both = await receiver();
    await create({ url: both.url, format: "mux", event_types: [first, second] });
    // Its master is not asked for.
    const { asset } = await readyAsset(app, key);
    const made = await uploaded(app, key);
    const id = String(made.asset.id);
    await mux.video.assets.updateMasterAccess(id, { master_access: "temporary" });
    await encodedNext(app);
    await app.runTask("deliver-webhooks");
    const seen = ({ received }: Receiver) => received.map(({ json }) => `${json.type} ${json.object.id}`).toSorted();
    const ofMaster = `${second} ${id}`;
    const ready = [`${first} ${asset.id}`, `${first} ${id}`].toSorted();
    expect([seen(there), seen(firstOnly), seen(both)]).toEqual([[ofMaster], ready, [...ready, ofMaster].toSorted()]);
    const ids = both.received.map(({ json }) => json.id);
    expect(new Set(ids).size).toBe(ids.length);

    // The id of the second one selects it alone. The first one has the id of our event, which selects both.
    const own = both.received.find(({ json }) => json.type === second)?.json.id;
    const replay = (...chosen: string[]) => app.as({ admin: app.admin }).replayDeliveries({ ids: chosen });
    for (const one of [there, firstOnly, both]) one.received.length = 0;
    expect((await replay(own)).body).toMatchObject({ matched: 2, replayed: 2, unknown: [] });
    await app.runTask("deliver-webhooks");
    expect([seen(there), seen(firstOnly), seen(both)]).toEqual([[ofMaster], [], [ofMaster]]);
    const [unnamed] = own.split("-");
    expect((await replay(unnamed)).body).toMatchObject({ matched: 4, unknown: [] });
    const unknown = `${unnamed}-video.asset.deleted`;
    expect((await replay(unknown)).body).toMatchObject({ matched: 0, unknown: [unknown] });
    expectError(await replay(`${unnamed}-Video Asset`), 422, "validation_failed");
  });

  test("subscribes by Mux's names or ours", async () => {
    const names = async (fields: object) => (await create({ format: "mux", ...fields })).body.event_types;
    expect(await names({ event_types: ["video.asset.track.ready"] })).toEqual(["video.asset.track.ready"]);
    expect(await names({ event_types: ["video.subtitle.ready"] })).toEqual(["video.asset.track.ready"]);
    expect((await names({})).length).toBe(44);
    expectError(await create({ format: "mux", event_types: ["video.job.started"] }), 422, "validation_failed");
    expectError(await create({ event_types: ["video.asset.track.ready"] }), 422, "validation_failed");
    expectError(await create({ format: "mux", event_types: ["video.live_stream.warning"] }), 422, "validation_failed");
    expectError(await create({ format: "other" }), 422, "validation_failed");
    const { body } = await create({});
    expect(body).toMatchObject({ format: "svc", event_types: [] });
    const change = (fields: object) => app.as(key).updateWebhook(body.id, fields);
    expect((await change({ format: "mux" })).body).toMatchObject({ format: "mux", event_types: await names({}) });
    expect((await change({ event_types: ["video.asset.ready"] })).body.event_types).toEqual(["video.asset.ready"]);
    expect((await change({ format: "svc" })).body).toMatchObject({ format: "svc", event_types: ["video.asset.ready"] });
  });
});
