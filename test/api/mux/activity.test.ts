import { beforeAll, expect, test } from "vitest";
import { dispatch } from "#platform/http/dispatch.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { uploaded } from "#test/support/flow.ts";
import { muxClient, refusal } from "#test/support/mux/client.ts";

let app: TestApp;
beforeAll(async () => {
  app = await testApp();
  return app.close;
});

/** A key, Mux's client of it, and what a change adds to the activity of its tenant, oldest first. */
async function recorded() {
  const tenant = await app.tenant();
  const key = await app.key(tenant.id);
  const entries = async () =>
    (await app.as({ admin: app.admin }).listActivity({ tenant_id: tenant.id, limit: 100 })).body;
  async function addedBy<T>(change: () => Promise<T>): Promise<{ value: T; added: any[] }> {
    const [{ id: last }] = await entries();
    const value = await change();
    return { value, added: (await entries()).filter(({ id }: { id: number }) => id > last).reverse() };
  }
  return { key, mux: muxClient(app, key), addedBy };
}

test("each change through Mux's API is one entry of the tenant's activity", async () => {
  const { key, mux, addedBy } = await recorded();
  const { asset } = await uploaded(app, key);
  const id = String(asset.id);
  const { value: stream, added: ofStream } = await addedBy(() =>
    mux.video.liveStreams.create({ playback_policies: ["public"], passthrough: "mine" }),
  );
  expect(ofStream).toMatchObject([
    {
      actor: expect.stringMatching(/^key:\d+$/),
      action: "create_channel",
      method: "POST",
      route: "/mux/video/v1/live-streams",
      target_type: "channels",
      target_id: stream.id,
      fields: ["playback_policies", "passthrough"],
    },
  ]);
  const { value: upload, added: ofUpload } = await addedBy(() =>
    mux.video.uploads.create({ cors_origin: "*", new_asset_settings: { passthrough: "a secret" } }),
  );
  const fields = ["cors_origin", "new_asset_settings", "new_asset_settings.passthrough"];
  expect(ofUpload).toMatchObject([
    { action: "create_direct_upload", target_type: "direct_uploads", target_id: upload.id, fields },
  ]);
  const { assets, uploads, liveStreams } = mux.video;
  const changes: [change: () => Promise<unknown>, action: string, targetId: string][] = [
    [() => assets.updateMasterAccess(id, { master_access: "temporary" }), "update_master_access", id],
    [() => assets.updateMP4Support(id, { mp4_support: "standard" }), "update_mp4_support", id],
    [() => assets.update(id, { passthrough: "mine", meta: { title: "A secret" } }), "update_asset", id],
    [() => uploads.cancel(upload.id), "cancel_direct_upload", upload.id],
    [() => liveStreams.update(stream.id, { passthrough: "yours" }), "update_channel", stream.id],
    [() => liveStreams.createPlaybackId(stream.id, { policy: "signed" }), "create_channel_playback_id", stream.id],
    [() => liveStreams.resetStreamKey(stream.id), "rotate_stream_key", stream.id],
    [() => liveStreams.disable(stream.id), "update_channel", stream.id],
    [() => liveStreams.delete(stream.id), "revoke_channel", stream.id],
    [() => assets.delete(id), "delete_asset", id],
  ];
  for (const [change, action, targetId] of changes) {
    const { added } = await addedBy(change);
    expect(added, action).toMatchObject([{ action, target_id: targetId }]);
    expect(JSON.stringify(added)).not.toContain("secret");
  }
});

test("what changes nothing leaves no entry, and a creation that is taken back leaves two", async () => {
  const { mux, addedBy } = await recorded();
  const reads = await addedBy(() => mux.video.assets.list());
  expect(reads.added).toEqual([]);
  const refused = await addedBy(() => refusal(mux.video.assets.updateMP4Support("1", { mp4_support: "none" })));
  expect(refused).toMatchObject({ value: { status: 404 }, added: [] });
  const target = { url: "rtmp://user:secret@example.com/app", stream_key: "x" };
  const back = await addedBy(() => refusal(mux.video.liveStreams.create({ simulcast_targets: [target] })));
  expect(back.value.status).toBe(400);
  expect(back.added.map(({ action }) => action)).toEqual(["create_channel", "revoke_channel"]);
});

test("an entry has the address of the client", async () => {
  const { key, addedBy } = await recorded();
  const { added } = await addedBy(async () => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const init = { method: "POST", headers, body: JSON.stringify({ playback_policies: ["public"] }) };
    const request = new Request("http://vodbox.test/mux/video/v1/live-streams", init);
    expect((await dispatch(app.opened.app, request, "192.0.2.7")).status).toBe(201);
  });
  expect(added).toMatchObject([{ address: "192.0.2.7" }]);
});
