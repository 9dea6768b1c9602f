import { createHmac, generateKeyPairSync, type KeyObject } from "node:crypto";
import Mux from "@mux/mux-node";
import { exportJWK, type JWTHeaderParameters, type JWTPayload, SignJWT } from "jose";
import { beforeEach, describe, expect, test, vi } from "vitest";
import type { App } from "#app.ts";
import { playbackTokens } from "#features/playback/token.ts";
import type { AssetRow } from "#storage/db/schema.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { readyAsset } from "#test/support/flow.ts";
import { subtitled } from "#test/support/subtitles.ts";

const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
const ed = generateKeyPairSync("ed25519");
const stranger = generateKeyPairSync("rsa", { modulusLength: 2048 });
const pem = (key: KeyObject) => String(key.export({ type: "spki", format: "pem" }));

let app: TestApp;
let tenant: { id: number };
let key: string;
let asset: any;
let signer: { id: number; key_id: string };
beforeEach(async () => {
  app = await testApp();
  tenant = await app.tenant();
  key = await app.key(tenant.id);
  ({ asset } = await readyAsset(app, key));
  signer = await registered(rsa.publicKey);
});
const registered = async (publicKey: KeyObject, owner = key) => {
  const made = await app.as(owner).createSigningKey({ public_key: pem(publicKey) });
  expect(made.status, made.text).toBe(201);
  return made.body;
};
const now = () => Math.floor(app.opened.app.clock.now() / 1000);

type Minted = {
  claims?: JWTPayload & Record<string, unknown>;
  header?: JWTHeaderParameters;
  by?: KeyObject | Uint8Array;
};
/** A token as a customer's backend issues it, with overrides: undefined omits a claim. */
const mint = ({ claims = {}, header, by = rsa.privateKey }: Minted = {}) =>
  new SignJWT({ sub: asset.external_id, aud: "v", exp: now() + 600, ...claims })
    .setProtectedHeader({ alg: "RS256", kid: signer.key_id, ...header } as JWTHeaderParameters)
    .sign(by);
const media = (file: string, token: string, of = asset) =>
  app.call("GET", `/media/${of.external_id.startsWith("vid_") ? of.external_id : of.id}/${file}?token=${token}`);
const plays = async (token: string, of = asset) => (await media("master.m3u8", token, of)).status;
const refuses = async (token: string, about: string, of = asset) =>
  expectError(await media("master.m3u8", token, of), 403, "playback_token_invalid", about);
const lines = (playlist: string) => playlist.split("\n").filter((line) => line !== "" && !line.startsWith("#"));

describe("a token that a customer's server issued", () => {
  test("covers the asset by any of its ids, with either kind of key", async () => {
    const other = await registered(ed.publicKey);
    const { asset: named } = await readyAsset(app, key, { external_id: "film.42" });
    for (const [by, header] of [
      [rsa.privateKey, { alg: "RS256", kid: signer.key_id, typ: "JWT" }],
      [ed.privateKey, { alg: "EdDSA", kid: other.key_id }],
    ] as const) {
      for (const [sub, of] of [
        [asset.external_id, asset],
        [String(asset.id), asset],
        ["film.42", named],
        [String(named.id), named],
      ] as const)
        expect(await plays(await mint({ claims: { sub }, header, by }), of), `${header.alg} ${sub}`).toBe(200);
    }
    expect(await plays(await mint({ claims: { aud: ["x", "v"], nbf: now(), extra: "ignored" } }))).toBe(200);
  });

  test("is accepted wherever one of ours is, and is passed on to each segment", async () => {
    const track = await subtitled(app, key, asset.id);
    const token = await mint();
    const query = `?token=${token}`;
    for (const file of ["master.m3u8", "manifest.mpd", "thumbnail.jpg", "storyboard.vtt", `subtitles/${track.id}.vtt`])
      expect((await media(file, token)).status, file).toBe(200);
    const master = `http://vodbox.test/media/${asset.external_id}/master.m3u8${query}`;
    const variant = new URL(lines((await app.call("GET", master)).text)[0] as string, master);
    const segment = new URL(lines((await app.call("GET", variant.href)).text)[0] as string, variant);
    expect(segment.pathname).toContain(`/~${token}/`);
    const verify = vi.spyOn(crypto.subtle, "verify");
    try {
      for (let turn = 0; turn < 20; turn++) expect((await app.call("GET", segment.href)).text).toBe("segment");
      expect(verify).not.toHaveBeenCalled();
      await plays(await mint({ claims: { jti: "another" } }));
      expect(verify).toHaveBeenCalledOnce();
    } finally {
      verify.mockRestore();
    }
    const data = await app.call("GET", `/embed/${asset.external_id}/player.json${query}`);
    expect(data.body).toMatchObject({ hls_url: `/media/${asset.external_id}/master.m3u8${query}` });
    for (const page of ["watch", "embed"]) {
      const shown = await app.call("GET", `/${page}/${asset.id}${query}`);
      expect([shown.status, shown.text.includes(`token="${token}"`)], page).toEqual([200, true]);
    }
    const link = encodeURIComponent(`http://vodbox.test/watch/${asset.external_id}${query}`);
    expect((await app.call("GET", `/oembed?url=${link}`)).body.html).toContain(token);
    for (const address of ["player.json", ""].map((rest) => `/embed/${asset.external_id}/${rest}`.replace(/\/$/, ""))) {
      const wrong = await app.call("GET", `${address}?token=${await mint({ claims: { aud: "t" } })}`);
      expect(wrong.status, address).toBe(403);
    }
  });

  test("can come from Mux's own library, for each of its types", async () => {
    const made = await app.as(key).createSigningKey({});
    const mux = new Mux({
      tokenId: "unused",
      tokenSecret: "unused",
      jwtSigningKey: made.body.key_id,
      jwtPrivateKey: made.body.private_key,
    });
    const sign = (type: "video" | "thumbnail" | "storyboard" | "gif") =>
      mux.jwt.signPlaybackId(asset.external_id, { expiration: "1h", type, params: { time: "3" } });
    const version = /\n(\S+?)\/low/
      .exec((await media("master.m3u8", await sign("video"))).text)?.[1]
      ?.split("/")
      .at(-1);
    const sheet = `${version}/storyboard-1.jpg`;
    const files = ["master.m3u8", "manifest.mpd", "thumbnail.jpg", `${version}/thumbnail.jpg`, "storyboard.vtt", sheet];
    const opened = { video: files, thumbnail: files.slice(2, 4), storyboard: files.slice(4), gif: [] as string[] };
    for (const type of ["video", "thumbnail", "storyboard", "gif"] as const) {
      const token = await sign(type);
      const found = await Promise.all(files.map(async (file) => [file, (await media(file, token)).status]));
      expect(found, type).toEqual(files.map((file) => [file, opened[type].includes(file) ? 200 : 403]));
    }
    // The library's result for several at once; the sheet is found through the storyboard.
    const all = (await mux.jwt.signPlaybackId(asset.external_id, {
      expiration: "1h",
      type: ["video", "storyboard"],
    })) as unknown as Record<string, string>;
    expect(await plays(all["playback-token"] as string)).toBe(200);
    const storyboard = await media("storyboard.vtt", all["storyboard-token"] as string);
    const tile = /^\S+#xywh=/m.exec(storyboard.text)?.[0].slice(0, -6) as string;
    expect((await app.call("GET", `http://vodbox.test/media/${asset.external_id}/${tile}`)).text).toBe("sheet");
  });

  test("is refused when it is forged, foreign, expired, not yet valid or for another purpose", async () => {
    const otherKey = await app.key((await app.tenant()).id);
    const theirs = await registered(stranger.publicKey, otherKey);
    const { asset: foreign } = await readyAsset(app, otherKey);
    const { asset: second } = await readyAsset(app, key);
    const edKey = await registered(ed.publicKey);
    const part = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const claims = { sub: asset.external_id, aud: "v", exp: now() + 600 };
    const asSecret = (alg: "HS256" | "HS512", secret: string) => {
      const text = `${part({ alg, kid: signer.key_id })}.${part(claims)}`;
      return `${text}.${createHmac(alg === "HS256" ? "sha256" : "sha512", secret)
        .update(text)
        .digest("base64url")}`;
    };
    const good = await mint();
    const own = (await app.as(key).getPlayback(asset.id)).body.token;
    const jwk = await exportJWK(stranger.publicKey);
    const hostile: Record<string, string> = {
      "alg none": `${part({ alg: "none", kid: signer.key_id })}.${part(claims)}.`,
      "alg None": `${part({ alg: "None", kid: signer.key_id })}.${part(claims)}.x`,
      "no alg": `${part({ kid: signer.key_id })}.${part(claims)}.${good.split(".")[2]}`,
      "the public key as a secret": asSecret("HS256", pem(rsa.publicKey)),
      "the public key as a secret without its last line": asSecret("HS256", pem(rsa.publicKey).trim()),
      "the public key as a longer secret": asSecret("HS512", pem(rsa.publicKey)),
      "another hash": await mint({ header: { alg: "RS512" } }),
      "RSA-PSS": await mint({ header: { alg: "PS256" } }),
      "the other kind of key": await mint({ header: { alg: "RS256", kid: edKey.key_id } }),
      "another's key": await mint({ by: stranger.privateKey, header: { alg: "RS256", kid: theirs.key_id } }),
      "another's key under our name": await mint({ by: stranger.privateKey }),
      "another's key in the header, ours among the claims": await mint({
        by: stranger.privateKey,
        header: { alg: "RS256", kid: theirs.key_id },
        claims: { kid: signer.key_id },
      }),
      "no key": await mint({ header: { alg: "RS256", kid: undefined as never } }),
      "an empty key id": await mint({ header: { alg: "RS256", kid: "" } }),
      "a number for a key id": await mint({ claims: { kid: 1 }, header: { alg: "RS256", kid: undefined as never } }),
      "SQL for a key id": await mint({ header: { alg: "RS256", kid: "' OR 1=1 --" } }),
      "a NUL in the key id": await mint({ header: { alg: "RS256", kid: `${signer.key_id}\0` } }),
      "a name of Object's for a key id": await mint({ header: { alg: "RS256", kid: "__proto__" } }),
      "an endless key id": await mint({ header: { alg: "RS256", kid: "k".repeat(9000) } }),
      "a key of its own": await mint({ by: stranger.privateKey, header: { alg: "RS256", jwk } as never }),
      "an address of a key": await mint({
        by: stranger.privateKey,
        header: { alg: "RS256", jku: "http://127.0.0.1:9/keys", x5u: "http://127.0.0.1:9/cert" } as never,
      }),
      "an unknown extension": `${part({ alg: "RS256", kid: signer.key_id, crit: ["x"], x: 1 })}.${part(claims)}.AA`,
      "no end": await mint({ claims: { exp: undefined as never } }),
      "an end that is no number": await mint({ claims: { exp: "tomorrow" as never } }),
      "no end in any calendar": await mint({ claims: { exp: 1e300 } }),
      "an end in the past": await mint({ claims: { exp: now() - 30 } }),
      "a beginning in the future": await mint({ claims: { nbf: now() + 300 } }),
      "no subject": await mint({ claims: { sub: undefined as never } }),
      "a number for a subject": await mint({ claims: { sub: asset.id as never } }),
      "another asset of the tenant": await mint({ claims: { sub: second.external_id } }),
      "another tenant's asset": await mint({ claims: { sub: foreign.external_id } }),
      "no audience": await mint({ claims: { aud: undefined as never } }),
      "a thumbnail's audience": await mint({ claims: { aud: "t" } }),
      "an audience of Mux's data": await mint({ claims: { aud: "playback_id" } }),
      "an altered claim": `${good.split(".")[0]}.${part({ ...claims, exp: now() + 9000 })}.${good.split(".")[2]}`,
      "one of ours with a key id": `${part({ alg: "HS256", kid: signer.key_id })}.${own.split(".").slice(1).join(".")}`,
      "one without a signature": good.slice(0, good.lastIndexOf(".") + 1),
      "two parts": good.split(".").slice(0, 2).join("."),
      "an array for a header": `${part([])}.${part(claims)}.AA`,
    };
    for (const [about, token] of Object.entries(hostile)) await refuses(token, about);
    // A key covers only its own tenant's assets, also when it names another's and both are cached here.
    expect(await plays(good)).toBe(200);
    await refuses(await mint({ claims: { sub: foreign.external_id } }), "on their asset", foreign);
    await refuses(good, "a remembered one on another asset", second);
    await refuses(good, "a remembered one on another's asset", foreign);
    expectError(await media("master.m3u8", ""), 403, "playback_token_required");
    // External ids are per tenant, so the same one may identify two assets.
    const { asset: named } = await readyAsset(app, key, { external_id: "film.42" });
    const { asset: namesake } = await readyAsset(app, otherKey, { external_id: "film.42" });
    const ofOurs = (await app.as(key).getPlayback(named.id)).body.token;
    for (const token of [await mint({ claims: { sub: "film.42" } }), ofOurs]) {
      await refuses(token, "on a namesake", namesake);
      expect(await plays(token, named)).toBe(200);
      await refuses(token, "remembered, on a namesake", namesake);
    }
  });

  test("is invalid once its key is revoked, immediately, also when cached; and with its tenant's suspension", async () => {
    const kept = await registered(ed.publicKey);
    const token = await mint();
    const other = await mint({ by: ed.privateKey, header: { alg: "EdDSA", kid: kept.key_id } });
    expect([await plays(token), await plays(other)]).toEqual([200, 200]);
    expect((await app.as(key).revokeSigningKey(signer.id)).status).toBe(204);
    await refuses(token, "remembered");
    await refuses(await mint(), "new");
    expect(await plays(other)).toBe(200);
    const suspend = (status: string) => app.as({ admin: app.admin }).updateTenant(tenant.id, { status });
    await suspend("suspended");
    // A shared database is read again after a second.
    if (process.env.VODBOX_TEST_DATABASE) app.advance(1001);
    expectError(await media("master.m3u8", other), 403, "tenant_suspended");
    await suspend("active");
    if (process.env.VODBOX_TEST_DATABASE) app.advance(1001);
    expect(await plays(other)).toBe(200);
  });
});

describe("caching", () => {
  /** The same App with its reads counted, a stopped clock, and optionally a shared database. */
  function counted(isShared = false) {
    const real = app.opened.app;
    let reads = 0;
    let atMs = now() * 1000;
    const db = new Proxy(real.db, {
      get(target, name) {
        if (name === "select") reads++;
        return Reflect.get(target, name, target);
      },
    });
    const of = { ...real, db, clock: { now: () => atMs }, ...(isShared && { commits: () => null }) } as App;
    const row = { id: asset.id, tenantId: tenant.id, externalId: asset.external_id } as AssetRow;
    const tokens = playbackTokens(of);
    return {
      verify: (token: string) => tokens.verify(row, token),
      reads: () => reads,
      second: () => atMs / 1000,
      turn: (ms: number) => {
        atMs += ms;
      },
    };
  }
  const revokeElsewhere = () => app.as(key).revokeSigningKey(signer.id);
  const refused = expect.objectContaining({ code: "playback_token_invalid" });

  test("expiry is checked with five seconds of tolerance, cached or not", async () => {
    const { verify, second, turn } = counted();
    const from = second() + 20;
    const to = second() + 60;
    const early = await mint({ claims: { nbf: second() + 5, exp: to } });
    const late = await mint({ claims: { nbf: from, exp: to } });
    const unseen = await mint({ claims: { jti: "unseen", exp: to } });
    const passed = await mint({ claims: { jti: "passed", exp: to } });
    await verify(early);
    await expect(verify(late)).rejects.toEqual(refused);
    turn(14_000);
    await expect(verify(late)).rejects.toEqual(refused);
    turn(1000);
    await verify(late);
    turn(49_000);
    for (const token of [early, late, unseen]) await verify(token);
    turn(1000);
    for (const token of [early, late, unseen, passed]) await expect(verify(token)).rejects.toEqual(refused);
  });

  test.for([false, true])("keys are not queried for each invented key id (database shared: %s)", async (isShared) => {
    const { verify, reads } = counted(isShared);
    await verify(await mint());
    const made = await Promise.all(
      Array.from({ length: 50 }, (_, index) => mint({ header: { alg: "RS256", kid: `sk_${index}`.padEnd(25, "x") } })),
    );
    await Promise.all(made.map((token) => expect(verify(token)).rejects.toEqual(refused)));
    for (const token of made) await expect(verify(token)).rejects.toEqual(refused);
    expect(reads()).toBe(1);
  });

  test("keys that another process revoked are refused within a second", async () => {
    const { verify, reads, turn } = counted(true);
    const token = await mint();
    await Promise.all([verify(token), verify(token), verify(token)]);
    await revokeElsewhere();
    turn(1000);
    await expect(verify(token)).rejects.toEqual(refused);
    await expect(verify(token)).rejects.toEqual(refused);
    expect(reads()).toBe(2);
  });
});
