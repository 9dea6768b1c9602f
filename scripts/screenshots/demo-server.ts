import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { RecentLines } from "#lib/base";
import { loadConfig } from "#platform/config/load.ts";
import { createLog } from "#src/log.ts";
import { serve } from "#src/serve.ts";
import { type Call, client } from "#test/support/client.ts";
import { uploaded } from "#test/support/flow.ts";
import { subtitled } from "#test/support/subtitles.ts";
import { FILMS } from "./films.ts";
import { ffmpeg } from "./keep.ts";

const HOUR_MS = 3_600_000;
const DAYS = 14;
const ADMIN = "admin-token-of-the-screenshots";
const CAPTIONS = [
  ["00:01.000 --> 00:05.000", "It starts with noise."],
  ["00:06.000 --> 00:11.000", "What dies leaves a glow."],
  ["00:12.000 --> 00:18.000", "Some shapes only walk."],
  ["00:19.000 --> 00:27.000", "Others stay where they are."],
];
const vtt = (lines: string[][]) => `WEBVTT\n\n${lines.map((line) => line.join("\n")).join("\n\n")}\n`;
/** The share of viewers, and the device they use. */
const DEVICES = [
  [0.5, "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0 Safari/537.36"],
  [0.3, "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148 Safari/604.1"],
  [0.1, "Mozilla/5.0 (iPad; CPU OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Mobile/15E148 Safari/604.1"],
  [0.1, "Mozilla/5.0 (SMART-TV; Linux; Tizen 8.0) AppleWebKit/537.36 (KHTML, like Gecko) Version/8.0 TV Safari/537.36"],
] as const;

const COUNTRIES = ["DE", "DE", "DE", "AT", "AT", "CH", "FR", "US", "JP", "XX"];
const REFERRERS = ["northlight.example", "northlight.example", "news.example", "search.example", "", ""];

export type Demo = {
  base: string;
  admin: string;
  user: { email: string; password: string };
  assetId: number;
  webhookId: number;
  /** A film as a file. */
  film: string;
  /** Uploads another film, which is then being encoded. */
  encodeAnother(): Promise<void>;
  stop(): Promise<void>;
};

/** The same numbers each time, from 0 to 1 (a linear congruential generator). */
function numbers(): () => number {
  let state = 42;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
}

const clipOf = (folder: string, index: number) => join(folder, `${index}.mp4`);

function makeClips(folder: string): void {
  for (const [index, { graph, seconds }] of FILMS.entries()) {
    const testAudio = ["-f", "lavfi", "-i", `sine=frequency=${180 + index * 40}:sample_rate=48000`];
    const encoders = ["-c:v", "libx264", "-preset", "ultrafast", "-crf", "18", "-pix_fmt", "yuv420p", "-c:a", "aac"];
    ffmpeg("-f", "lavfi", "-i", graph, ...testAudio, "-t", String(seconds), ...encoders, clipOf(folder, index));
  }
}

/** A server with `settings`, with films, the viewers of two weeks, a webhook, a live channel and keys. */
export async function startDemo(folder: string, settings: Record<string, string> = {}): Promise<Demo> {
  // This waits for ffmpeg, which a server in the same process must not.
  makeClips(folder);
  let offset = -DAYS * 24 * HOUR_MS;
  const receiver = createServer((request, response) => {
    request.resume().on("end", () => response.writeHead(Math.random() < 0.2 ? 503 : 200).end("ok"));
  });
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  const env = {
    VODBOX_ADMIN_TOKEN: ADMIN,
    VODBOX_WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8",
    VODBOX_LOG_LEVEL: "error",
    VODBOX_RATE_LIMIT_BEACON: "1000000/1",
    VODBOX_LOG_FORMAT: "json",
    VODBOX_TRUSTED_PROXIES: "127.0.0.0/8",
    VODBOX_COUNTRY_HEADER: "cf-ipcountry",
    ...settings,
  };
  const config = loadConfig({ flags: { data_dir: join(folder, "data"), port: 0, workers: 1 }, env, cwd: folder });
  const recentLines = new RecentLines();
  const log = await createLog({ log_level: "info", log_format: "json" }, recentLines);
  const running = await serve(config, { log, recentLines, clock: { now: () => Date.now() + offset } });
  const call = client(running.address);
  const hook = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hooks/vodbox`;
  const filled = await fill(call, folder, hook);
  await watch(call, filled.films, (ms) => {
    offset = ms;
  });
  offset = 0;
  const { films: _, key, ...rest } = filled;
  return {
    ...rest,
    base: running.baseUrl,
    admin: ADMIN,
    film: clipOf(folder, 0),
    encodeAnother: async () => {
      const bytes = readFileSync(clipOf(folder, 0));
      await uploaded({ call }, key, { bytes, playback_policy: "public", title: "Second descent" });
    },
    async stop() {
      await running.stop();
      receiver.closeAllConnections();
      receiver.close();
    },
  };
}

type FilmAsset = { id: number; seconds: number };

async function fill(call: Call, folder: string, hook: string) {
  const made = async (method: string, path: string, body: unknown, credentials = { admin: ADMIN } as object) => {
    const answer = await call(method, `/api/v1${path}`, { ...credentials, body });
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.text}`);
    return answer.body;
  };
  const tenant = await made("POST", "/admin/tenants", { name: "Northlight Films", slug: "northlight" });
  await made("POST", "/admin/tenants", { name: "Kunsthalle", slug: "kunsthalle", plan_name: "starter" });
  const user = { email: "ann@northlight.example", password: "correct horse" };
  await made("POST", "/admin/users", {
    tenant_id: tenant.id,
    email_address: user.email,
    password: user.password,
  });
  const keyOf = async (name: string, scopes: string[]) =>
    (await made("POST", "/api_keys", { tenant_id: tenant.id, name, scopes })).token as string;
  const key = await keyOf("Website", ["assets:read", "assets:write", "playback:read"]);
  await keyOf("Uploader in the studio", ["assets:write"]);
  await made("POST", "/signing_keys", { tenant_id: tenant.id, name: "Backend", algorithm: "EdDSA" });
  const webhook = await made("POST", "/webhooks", { tenant_id: tenant.id, url: hook, description: "Website" });
  await made("POST", "/live/channels", { tenant_id: tenant.id, channel: "main-stage", name: "Main stage" });
  const own = { key };
  const collections = new Map<string, number>();
  for (const name of ["Fractals", "Automata", "Light"])
    collections.set(
      name.toLowerCase(),
      (
        await made(
          "POST",
          "/collections",
          { tenant_id: tenant.id, collection: { name, slug: name.toLowerCase() } },
          own,
        )
      ).id,
    );

  const films: FilmAsset[] = [];
  for (const [index, { seconds, title, description, tags }] of FILMS.entries()) {
    const clip = clipOf(folder, index);
    const fields = {
      bytes: readFileSync(clip),
      playback_policy: "public",
      title,
      description,
      filename: `${index}.mp4`,
    };
    const { asset } = await uploaded({ call }, key, fields);
    const collection = collections.get(String(tags.series));
    await made("PATCH", `/assets/${asset.id}`, { video_asset: { collection_id: collection } }, own);
    await made("PATCH", `/assets/${asset.id}/tags`, tags, own);
    films.push({ id: asset.id, seconds });
  }
  for (const { id } of films)
    for (;;) {
      const { playback_status } = (await call("GET", `/api/v1/assets/${id}`, own)).body;
      if (playback_status === "ready") break;
      if (playback_status === "errored") throw new Error(`Film ${id} cannot be encoded.`);
      await sleep(200);
    }
  const assetId = (films.at(-1) as FilmAsset).id;
  await subtitled({ call }, key, assetId, { is_default: "1" }, vtt(CAPTIONS));
  const cues = ["A first generation", "Gliders", "Still lives"].map((title, index) => ({
    start_ms: index * 10_000,
    payload: { title },
  }));
  await made("POST", `/assets/${assetId}/tracks`, { kind: "chapter", name: "chapters", cues }, own);
  return { films, key, user, assetId, webhookId: webhook.id as number };
}

/** Viewers come in the evening, more of them each day, and most leave before the end. */
async function watch(call: Call, films: readonly FilmAsset[], setOffset: (ms: number) => void): Promise<void> {
  const random = numbers();
  let session = 0;
  for (let hour = DAYS * 24; hour > 0; hour--) {
    setOffset(-hour * HOUR_MS);
    const time = new Date(Date.now() - hour * HOUR_MS).getUTCHours();
    const fromEvening = ((time - 20 + 36) % 24) - 12;
    const evening = Math.exp(-(fromEvening * fromEvening) / 18);
    const views = Math.round((2 + 14 * evening) * (1 + (DAYS * 24 - hour) / 240) * (0.6 + random() * 0.8));
    for (let view = 0; view < views; view++) {
      const film = films[Math.floor(random() ** 1.6 * films.length)] as FilmAsset;
      const events = eventsOf(film, `s${++session}`, `v${Math.floor(random() * 400)}`, random);
      let share = random();
      const origin = { country: random(), referrer: random() };
      const one = (of: readonly string[], share: number) => of[Math.floor(share * of.length)] as string;
      for (const event of events) Object.assign(event, { referrer: one(REFERRERS, origin.referrer) });
      const agent = DEVICES.find(([part]) => {
        share -= part;
        return share <= 0;
      })?.[1];
      await call("POST", "/api/v1/playback_events", {
        body: { events },
        headers: { "user-agent": agent ?? DEVICES[0][1], "cf-ipcountry": one(COUNTRIES, origin.country) },
      });
    }
    // Recorded once a second.
    await sleep(hour % 24 === 0 ? 1500 : 0);
  }
  await sleep(2500);
}

function eventsOf({ id, seconds }: FilmAsset, session: string, viewer: string, random: () => number) {
  const common = { asset_id: id, session_id: session, viewer_id: viewer };
  if (random() < 0.02) return [{ ...common, event: "error", position_seconds: 0 }];
  const end = random() < 0.35 ? seconds : seconds * (0.1 + 0.85 * random());
  const startup = Math.round(180 + 900 * random() ** 3);
  const events: object[] = [{ ...common, event: "play", position_seconds: 0, startup_ms: startup }];
  for (let at = 5; at < end; at += 5)
    events.push({ ...common, event: "heartbeat", position_seconds: at, watched_seconds: 5 });
  const last = { ...common, position_seconds: end, watched_seconds: end % 5 || 5 };
  return [...events, { ...last, event: end === seconds ? "ended" : "pause" }];
}
