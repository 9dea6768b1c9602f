import { expect, test } from "vitest";
import { altered } from "#test/support/altered.ts";
import { testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { gatewayOf } from "#test/support/gateway.ts";

const path = "/api/v1/live/channels";

test("a channel has tokens that publish in place of the stream key, until they expire or the key is replaced", async () => {
  const app = await testApp();
  const gateway = gatewayOf(app);
  const tenant = await app.tenant();
  const key = await app.key(tenant.id);
  const create = async (body: Record<string, unknown>) => (await app.as(key).unchecked.createChannel(body)).body;
  app.stopClock();
  const stage = await create({ channel: "stage", publisher: "ann" });
  const other = await create({ channel: "other" });
  const at = `${path}/${stage.id}/publish_token`;
  const made = await app.call("POST", at, { key, body: { expires_in: 60 } });
  expect(made.status).toBe(201);
  const { token, token_expires_at, whip_url } = made.body;
  expect(Date.parse(token_expires_at) - app.opened.app.clock.now()).toBe(60_000);
  expect(whip_url).toBe(null);
  const publish = (password: string, channel = "stage") =>
    gateway.may({ action: "publish", path: `live/${channel}`, password });
  expect(await publish(token)).toBe(204);
  const [until, signed] = token.slice("live_".length).split(".");
  const later = (app.opened.app.clock.now() + 3_600_000).toString(36);
  for (const [about, forged] of Object.entries({
    "a later time": `live_${later}.${signed}`,
    "another signature": `live_${until}.${altered(signed)}`,
    "no signature": `live_${until}.`,
    "more after it": `${token}x`,
    "a line's end": `${token}\n`,
  }))
    expect(await publish(forged), about).toBe(403);
  expect(await publish(token, "other")).toBe(403);
  expect(await gateway.may({ action: "read", path: "live/stage", password: token })).toBe(403);
  const theirs = await app.key((await app.tenant()).id);
  expectError(await app.as(theirs).createPublishToken(stage.id, {}), 404, "not_found");
  const reader = await app.key(tenant.id, ["assets:read"]);
  expectError(await app.as(reader).createPublishToken(stage.id, {}), 403, "forbidden_scope");
  for (const expires_in of [59, 43_201, 60.5, "60"])
    expectError(await app.as(key).unchecked.createPublishToken(stage.id, { expires_in }), 422, "validation_failed");

  app.advance(60_000);
  expect(await publish(token)).toBe(403);
  const next = (await app.as(key).createPublishToken(other.id, {})).body.token;
  expect(await publish(next, "other")).toBe(204);
  await app.as(key).rotateStreamKey(other.id);
  expect(await publish(next, "other")).toBe(403);
});
