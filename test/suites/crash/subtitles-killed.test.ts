import { readdirSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import Sqlite from "libsql";
import { expect, test } from "vitest";
import { amount } from "#test/support/amount.ts";
import { testApp } from "#test/support/app.ts";
import type { Random } from "#test/support/crash/random.ts";
import { uploaded } from "#test/support/flow.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { type RunningServer, startServer, stopCleanly, tenantKey } from "#test/support/process.ts";
import { seeded } from "#test/support/seed.ts";
import { subtitleForm } from "#test/support/subtitles.ts";

const ROUNDS = amount(2, 8, "CRASH_ROUNDS");
const LANGUAGES = ["en", "de", "fr", "it", "es", "pt"];
const env = { VODBOX_RATE_LIMIT_UPLOADS: "1000000/60", VODBOX_MIN_FREE_BYTES: "0" };

/** Identified by its number, and long enough to be truncated. */
const textOf = (serial: number) =>
  `WEBVTT\n\n${`00:00.000 --> 00:01.000\n${serial}\n\n`.repeat((serial % 60) * 20 + 1)}`;

/** Possible texts of a track: the last acknowledged one, and those requested since; null: it may be deleted. */
type Track = { id: number; language: string; may: Set<number | null> };
type Scene = { server: RunningServer; random: Random; key: string; acknowledge(): void };

/** A client that is the only one to change an asset, until the server exits. */
class Client {
  readonly path: string;
  readonly tracks = new Map<string, Track>();
  /** Posted without a response: the track may exist or not. */
  readonly unsure = new Map<string, number>();
  static serial = 0;
  constructor(assetId: number) {
    this.path = `/api/v1/assets/${assetId}/subtitles`;
  }

  async turn({ server, random, key, acknowledge }: Scene): Promise<void> {
    const language = LANGUAGES[random.whole(0, LANGUAGES.length - 1)] as string;
    const track = this.tracks.get(language);
    const serial = ++Client.serial;
    if (!track) {
      if (this.unsure.has(language)) return;
      this.unsure.set(language, serial);
      const raw = subtitleForm({ language }, textOf(serial));
      const made = await server.call("POST", this.path, { key, raw });
      expect(made.status, made.text).toBe(201);
      this.unsure.delete(language);
      this.tracks.set(language, { id: made.body.id, language, may: new Set([serial]) });
    } else if (random.chance(0.7)) {
      track.may.add(serial);
      const body = { content: textOf(serial) };
      const changed = await server.call("PATCH", `${this.path}/${track.id}`, { key, body });
      expect([changed.status, changed.body.bytes]).toEqual([200, Buffer.byteLength(body.content)]);
      track.may = new Set([serial]);
    } else {
      track.may.add(null);
      expect((await server.call("DELETE", `${this.path}/${track.id}`, { key })).status).toBe(204);
      this.tracks.delete(language);
    }
    acknowledge();
  }

  /** The current text was acknowledged, or requested after the acknowledged one. */
  async check({ call }: RunningServer, key: string): Promise<void> {
    const { status, body } = await call("GET", `${this.path}?include=content`, { key });
    expect(status).toBe(200);
    for (const { id, language, content, bytes } of body) {
      expect(bytes).toBe(Buffer.byteLength(content));
      const serial = Number(/^\d+$/m.exec(content)?.[0]);
      expect(content).toBe(textOf(serial));
      const track = this.tracks.get(language);
      if (track) expect([track.id, track.may.has(serial)]).toEqual([id, true]);
      else expect(this.unsure.get(language)).toBe(serial);
      this.tracks.set(language, { id, language, may: new Set([serial]) });
    }
    const present = new Set(body.map((one: { language: string }) => one.language));
    for (const [language, track] of this.tracks) {
      if (present.has(language)) continue;
      expect(track.may.has(null), `${this.path} ${language}`).toBe(true);
      this.tracks.delete(language);
    }
    this.unsure.clear();
  }
}

test(`kill -9 among subtitles, ${ROUNDS} times: every row has its text, and no text is nobody's`, async () => {
  const random = seeded();
  const dataDir = emptyFolder();
  let server = await startServer(dataDir, { env });
  const key = await tenantKey(server, ["assets:write"]);
  const clients: Client[] = [];
  for (let count = 0; count < 4; count++) clients.push(new Client((await uploaded(server, key)).asset.id));

  let acknowledged = 0;
  for (let round = 1; round <= ROUNDS; round++) {
    const enough = Promise.withResolvers<void>();
    const until = acknowledged + random.whole(10, 60);
    const acknowledge = () => {
      if (++acknowledged >= until) enough.resolve();
    };
    const loaded = Promise.all(
      clients.map(async (client) => {
        for (;;) {
          try {
            await client.turn({ server, random, key, acknowledge });
          } catch (error) {
            // The server has exited; any other error is an unexpected refusal.
            if (error instanceof TypeError) return;
            throw error;
          }
        }
      }),
    );
    await Promise.race([enough.promise, loaded]);
    await new Promise((resolve) => setTimeout(resolve, random.next() * 12));
    server.child.kill("SIGKILL");
    expect((await server.ended).signal).toBe("SIGKILL");
    await loaded;
    server = await startServer(dataDir, { env });
    for (const client of clients) await client.check(server, key);
  }
  await stopCleanly(server);

  const objects = join(dataDir, "objects");
  const texts = () =>
    readdirSync(objects, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.parentPath.endsWith("/subtitles"))
      .map((entry) => relative(objects, join(entry.parentPath, entry.name)))
      .sort();
  const before = texts().length;
  const database = new Sqlite(join(dataDir, "vodbox.db"), { readonly: true } as Sqlite.Options);
  const all = (sql: string) => database.prepare(sql).all([]) as any[];
  const rows = all("SELECT object_key, bytes FROM subtitles ORDER BY object_key");
  const [usage] = all("SELECT storage_bytes AS bytes FROM tenants");
  const [sum] = all("SELECT sum(source_bytes) + (SELECT sum(bytes) FROM subtitles) AS bytes FROM assets");
  const [held] = all("SELECT sum(storage_bytes) AS bytes FROM assets");
  const told = all("SELECT data FROM events WHERE type = 'video.subtitle.ready'").map(
    ({ data }) => JSON.parse(data).subtitle_id,
  );
  const everMade = all("SELECT seq FROM sqlite_sequence WHERE name = 'subtitles'")[0].seq;
  database.close();
  expect(rows.length).toBeGreaterThan(5);
  for (const { object_key, bytes } of rows) expect(statSync(join(objects, object_key)).size).toBe(bytes);
  expect([usage.bytes, held.bytes]).toEqual([sum.bytes, sum.bytes]);
  // Ids have no gaps, and each one has one event.
  expect(told).toEqual(Array.from({ length: everMade }, (_, index) => index + 1));

  const later = await testApp({}, dataDir);
  later.advance(3_600_001);
  for (let left = -1; left !== texts().length; ) {
    left = texts().length;
    await later.runTask("sweep-objects");
  }
  console.log(`${acknowledged} answers, ${rows.length} tracks, ${before - rows.length} texts swept`);
  expect(texts()).toEqual(rows.map(({ object_key }) => object_key));
});
