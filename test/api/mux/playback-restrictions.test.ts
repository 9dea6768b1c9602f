import type Mux from "@mux/mux-node";
import { beforeAll, describe, expect, expectTypeOf, test } from "vitest";
import { toMuxRestriction } from "#features/mux/system/playback-restrictions.ts";
import { allows } from "#features/playback-restrictions/allows.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { readyAsset } from "#test/support/flow.ts";
import { muxClient, refusal } from "#test/support/mux/client.ts";

let app: TestApp;
let key: string;
let mux: Mux;
beforeAll(async () => {
  app = await testApp();
  key = await app.key((await app.tenant()).id);
  mux = muxClient(app, key);
  return app.close;
});
const referrer = { allowed_domains: ["example.com", "*.Example.org"] };
const restrictions = () => mux.video.playbackRestrictions;

describe("playback restrictions", () => {
  test("have Mux's type, and are the same in both APIs", async () => {
    expectTypeOf(toMuxRestriction).returns.toExtend<Mux.Video.PlaybackRestriction>();
    const made = await restrictions().create({ referrer, user_agent: { allow_no_user_agent: true } });
    expect(made).toMatchObject({
      referrer: { allowed_domains: ["example.com", "*.example.org"], allow_no_referrer: false },
      user_agent: { allow_no_user_agent: true, allow_high_risk_user_agent: true },
    });
    expect(await restrictions().retrieve(made.id)).toEqual(made);
    expect((await restrictions().list()).data).toEqual([made]);
    const native = await app.as(key).getPlaybackRestriction(made.id);
    expect(native.body).toMatchObject({ allowed_domains: made.referrer.allowed_domains, allow_no_user_agent: true });
    expect((await app.as(key).listPlaybackRestrictions()).body).toEqual([native.body]);
    const open = await restrictions().updateReferrer(made.id, { allowed_domains: ["*"], allow_no_referrer: true });
    expect(open.referrer).toEqual({ allowed_domains: ["*"], allow_no_referrer: true });
    const agent = { allow_no_user_agent: false, allow_high_risk_user_agent: true };
    expect((await restrictions().updateUserAgent(made.id, agent)).user_agent).toEqual(agent);
    const risky = restrictions().updateUserAgent(made.id, { ...agent, allow_high_risk_user_agent: false });
    expect(await refusal(risky)).toMatchObject({ status: 422, messages: [expect.stringContaining("high_risk")] });
    const changed = await app.as(key).updatePlaybackRestriction(made.id, { allow_no_referrer: false });
    expect(changed.body).toMatchObject({
      allowed_domains: ["*"],
      allow_no_referrer: false,
      allow_no_user_agent: false,
    });
    const stranger = await app.key((await app.tenant()).id);
    expectError(await app.as(stranger).deletePlaybackRestriction(made.id), 404, "not_found");
    expect(await refusal(muxClient(app, stranger).video.playbackRestrictions.delete(made.id))).toMatchObject({
      status: 404,
    });
    await restrictions().delete(made.id);
    expect(await refusal(restrictions().retrieve(made.id))).toMatchObject({ status: 404 });
  });

  test.each<[string, unknown]>([
    ["a URL", ["https://example.com"]],
    ["a port", ["example.com:80"]],
    ["a wildcard within a name", ["a*.example.com"]],
    ["an empty name", [""]],
    ["a long name", ["a".repeat(254)]],
    ["too many", Array(101).fill("example.com")],
  ])("with %s as a domain are refused", async (_, allowed_domains) => {
    expectError(await app.as(key).unchecked.createPlaybackRestriction({ allowed_domains }), 422, "validation_failed");
    const made = restrictions().create({ referrer: { allowed_domains } as never, user_agent: {} });
    expect(await refusal(made)).toMatchObject({ status: 400, type: "invalid_parameters" });
  });

  test("are enforced for tokens that name them, as they are at the time of the request", async () => {
    const { asset } = await readyAsset(app, key);
    const own = await restrictions().create({ referrer, user_agent: { allow_no_user_agent: true } });
    const signer = await mux.system.signingKeys.create();
    const sign = (playback_restriction_id: string) =>
      mux.jwt.signPlaybackId(asset.external_id, {
        keyId: signer.id,
        keySecret: signer.private_key as string,
        params: { playback_restriction_id },
      });
    const token = await sign(own.id);
    const play = async (headers: Record<string, string>, own = token) => {
      const path = `/media/${asset.external_id}/master.m3u8?token=${own}`;
      return (await app.call("GET", path, { headers })).status;
    };
    const good = { referer: "https://example.com/page" };
    expect(await play(good)).toBe(200);
    expect(await play({ origin: "https://www.example.org" })).toBe(200);
    expect(await play({ referer: "https://evil.example/?example.com" })).toBe(403);
    expect(await play({})).toBe(403);
    expect(await play(good, await sign("999"))).toBe(403);
    const segment = (
      await app.call("GET", `/mux/stream/${asset.external_id}.m3u8?token=${token}`, { headers: good })
    ).text
      .split("\n")
      .find((line) => line.startsWith("../../media/"))
      ?.replace("../..", "");
    expect((await app.call("GET", segment as string, { headers: good })).status).toBe(200);
    expect((await app.call("GET", segment as string)).status).toBe(403);
    const watch = (headers: Record<string, string>) =>
      app.call("GET", `/watch/${asset.external_id}?token=${token}`, { headers });
    expect([(await watch(good)).status, (await watch({})).status]).toEqual([200, 403]);
    await restrictions().updateReferrer(own.id, { allowed_domains: [], allow_no_referrer: true });
    expect([await play(good), await play({})]).toEqual([403, 200]);
    await restrictions().delete(own.id);
    expect(await play({})).toBe(403);
  });

  test("of signed live streams follow the viewer to the channel", async () => {
    const made = await mux.video.liveStreams.create({ playback_policies: ["signed"] });
    const own = await restrictions().create({ referrer, user_agent: { allow_no_user_agent: true } });
    const signer = await mux.system.signingKeys.create();
    const id = made.playback_ids?.[0]?.id as string;
    const token = await mux.jwt.signPlaybackId(id, {
      keyId: signer.id,
      keySecret: signer.private_key as string,
      params: { playback_restriction_id: own.id },
    });
    const headers = { referer: "https://example.com/" };
    const path = `/mux/stream/${id}.m3u8?token=${token}`;
    expect((await app.call("GET", path)).status).toBe(403);
    const first = await app.call("GET", path, { headers });
    expect(first.status).toBe(302);
    const location = first.headers.get("location") as string;
    expectError(await app.call("GET", location), 403, "playback_token_invalid");
    expectError(await app.call("GET", location, { headers }), 404, "channel_idle");
  });
});

test("a restriction allows a request by its headers", () => {
  const rule = { allowedDomains: ["example.com", "*.example.org"], allowNoReferrer: false, allowNoUserAgent: true };
  const rows: [Record<string, string>, object, boolean][] = [
    [{ referer: "https://example.com/a" }, {}, true],
    [{ referer: "http://EXAMPLE.com:8080" }, {}, true],
    [{ referer: "https://www.example.com" }, {}, false],
    [{ referer: "https://www.example.org" }, {}, true],
    [{ referer: "https://example.org" }, {}, false],
    [{ referer: "https://notexample.org" }, {}, false],
    [{ referer: "https://evil.example", origin: "https://example.com" }, {}, false],
    [{ origin: "null" }, {}, false],
    [{ origin: "null" }, { allowNoReferrer: true }, true],
    [{ referer: "not a URL" }, { allowNoReferrer: true }, true],
    [{ referer: "https://anything.example" }, { allowedDomains: ["*"] }, true],
    [{ referer: "https://example.com" }, { allowNoUserAgent: false }, false],
    [{ referer: "https://example.com", "user-agent": "x" }, { allowNoUserAgent: false }, true],
  ];
  for (const [headers, other, expected] of rows)
    expect([headers, other, allows({ ...rule, ...other }, new Headers(headers))]).toEqual([headers, other, expected]);
});
