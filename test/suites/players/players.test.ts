import { spawn } from "node:child_process";
import { createPrivateKey } from "node:crypto";
import { chownSync, readFileSync } from "node:fs";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { SignJWT } from "jose";
import { beforeAll, describe, expect, test, vi } from "vitest";
import { until } from "#test/support/descendants.ts";
import { uploaded } from "#test/support/flow.ts";
import { atEnd, emptyFolder, newFolder, removeFolder } from "#test/support/folder.ts";
import { fast, ffmpeg, ffprobe, picture, sound } from "#test/support/media/sources.ts";
import { type Ended, type RunningServer, startServer, watched } from "#test/support/process.ts";

/**
 * Independent players. Each gets only a URL, and must fetch every segment below it: of a public asset, and of one with
 * signed playback, with a token of ours and with one that a tenant issued.
 */
const SECONDS = 5;
const FRAMES = SECONDS * 25;
const NOBODY = 65_534;
const MADE_WITHIN_MS = 200_000;
vi.setConfig({ hookTimeout: 420_000 });

let server: RunningServer;
/** Players by how the URL is given: the path of its master playlist, with the token if there is one. */
let addresses: Record<"public" | "our token" | "a tenant's token", string>;
beforeAll(async () => {
  const folder = newFolder();
  server = await startServer(join(folder, "data"), { args: ["--workers", "1"] });
  const clip = join(folder, "clip.mp4");
  await ffmpeg(...picture("320x180", "25", SECONDS), ...sound(SECONDS), ...fast, "-pix_fmt", "yuv420p", clip);
  const { admin } = server;
  const tenant = await server.as({ admin }).createTenant({ name: "T", slug: "t" });
  const tenant_id = tenant.body.id;
  const scopes = ["assets:write", "playback:read"];
  const key = (await server.as({ admin }).createApiKey({ tenant_id, scopes })).body.token;
  const bytes = readFileSync(clip);
  const open = await uploaded(server, key, { bytes, playback_policy: "public" });
  const signed = await uploaded(server, key, { bytes, playback_policy: "signed" });
  const playback = ({ asset }: { asset: { id: number } }) =>
    until(
      "playback",
      async () => {
        const answer = await server.as(key).getPlayback(asset.id);
        return answer.status === 200 ? new URL(answer.body.hls_url) : null;
      },
      MADE_WITHIN_MS,
    );
  const free = await playback(open);
  const ours = await playback(signed);
  const signer = (await server.as({ admin }).createSigningKey({ tenant_id })).body;
  const theirs = await new SignJWT({ sub: signed.asset.external_id, aud: "v" })
    .setProtectedHeader({ alg: "RS256", kid: signer.key_id })
    .setExpirationTime("1h")
    .sign(createPrivateKey(Buffer.from(signer.private_key, "base64").toString()));
  addresses = {
    public: free.pathname,
    "our token": ours.pathname + ours.search,
    "a tenant's token": `${ours.pathname}?token=${theirs}`,
  };
  return async () => {
    server.child.kill("SIGTERM");
    await server.ended;
    removeFolder(folder);
  };
});

type Answered = { path: string; status: number };
/** A proxy to the server that records complete responses. */
async function recorded(): Promise<{ base: string; answers: Answered[] }> {
  const answers: Answered[] = [];
  const door = createServer((incoming, outgoing) => {
    const { method, url = "/", headers } = incoming;
    const asked = request(new URL(url, server.base), { method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode as number, answer.headers);
      answer.pipe(outgoing);
      answer.on("end", () => answers.push({ path: url.split("?")[0] as string, status: answer.statusCode as number }));
    });
    asked.on("error", () => outgoing.destroy());
    outgoing.on("close", () => asked.destroy());
    incoming.pipe(asked);
  });
  await new Promise<void>((listening) => door.listen(0, "127.0.0.1", listening));
  atEnd(() => {
    door.closeAllConnections();
    door.close();
  });
  return { base: `http://127.0.0.1:${(door.address() as AddressInfo).port}`, answers };
}

/** Paths that must be fetched to play `master`: init and media segments of video and audio. */
async function segmentsBelow(master: string): Promise<string[]> {
  const at = async (path: string) => (await server.call("GET", path)).text;
  const playlists = [...(await at(master)).matchAll(/^#EXT-X-MEDIA:.*URI="([^"]+)"|^(?!#)(\S+)/gm)].map(
    ([, sound, picture]) => new URL((sound ?? picture) as string, server.base + master),
  );
  const found = await Promise.all(
    playlists.map(async (playlist) =>
      [...(await at(playlist.pathname)).matchAll(/^#EXT-X-MAP:URI="([^"]+)"|^(?!#)(\S+)/gm)].map(
        ([, init, segment]) => new URL((init ?? segment) as string, playlist).pathname,
      ),
    ),
  );
  return found.flat();
}

type Play = { file: string; args: string[]; env?: NodeJS.ProcessEnv; uid?: number };
function play({ file, args, env, uid }: Play): Promise<Ended> {
  const as = uid !== undefined && process.getuid?.() === 0 ? { uid, gid: uid } : {};
  return watched(spawn(file, args, { env: { PATH: process.env.PATH, ...env }, ...as })).ended;
}
const asDash = (address: string) => address.replace("master.m3u8", "manifest.mpd");

const withFfmpeg = async (address: string) => {
  const args = ["-nostdin", "-v", "warning", "-progress", "pipe:1", "-i", address, "-f", "null", "-"];
  const { code, stdout } = await play({ file: "ffmpeg", args });
  const last = (name: string) => [...stdout.matchAll(new RegExp(`^${name}=(.*)$`, "gm"))].at(-1)?.[1];
  expect([code, last("frame"), last("progress")]).toEqual([0, String(FRAMES), "end"]);
};
const withMpv = async (address: string) => {
  const unseen = ["--vo=null", "--ao=null", "--untimed", "--ao-null-untimed=yes"];
  const args = ["--no-config", "--no-ytdl", "--no-input-terminal", ...unseen, "--msg-level=all=info", address];
  const { code, stdout, stderr } = await play({ file: "mpv", args, env: { HOME: emptyFolder() } });
  expect([code, /Exiting\.\.\. \(End of file\)/.test(stdout)], stdout + stderr).toEqual([0, true]);
  expect(stdout).toMatch(/Video --vid=1.*h264[\s\S]*Audio --aid=1.*aac/);
};
const withStreamlink = async (address: string) => {
  const home = emptyFolder();
  const kept = join(home, "kept.mkv");
  // It joins video and audio with ffmpeg, and loses what arrived before that had started: with a short video,
  // everything. Without it only the video is fetched.
  const args = ["--ffmpeg-ffmpeg", "/nothing", "--output", kept, address, "best"];
  const { code, stdout, stderr } = await play({ file: "streamlink", args, env: { HOME: home } });
  expect(code, stdout + stderr).toBe(0);
  const streams = await ffprobe(
    "-count_frames",
    "-show_entries",
    "stream=codec_name,nb_read_frames",
    "-of",
    "csv=p=0",
    kept,
  );
  expect(streams.trim()).toBe(`h264,${FRAMES}`);
  expect(Number(await ffprobe("-show_entries", "format=duration", "-of", "csv=p=0", kept))).toBeCloseTo(SECONDS, 0);
};
const withVlc = async (address: string) => {
  // It refuses to run as root.
  const home = emptyFolder();
  if (process.getuid?.() === 0) chownSync(home, NOBODY, NOBODY);
  const unseen = ["-I", "dummy", "--vout", "dummy", "--aout", "dummy", "--no-video-title-show"];
  const args = [...unseen, "--play-and-exit", "-vv", address];
  const { code, stderr } = await play({ file: "vlc", args, env: { HOME: home }, uid: NOBODY });
  const said = ["Received first ", "EOF reached", "end of playlist, exiting"];
  expect([code, ...said.map((line) => stderr.includes(line))], stderr.slice(-4000)).toEqual([0, true, true, true]);
};

describe("every segment is fetched, and played to its end, by", () => {
  test.for<[name: string, player: (address: string) => Promise<void>, skipped?: string]>([
    ["ffmpeg by HLS", withFfmpeg],
    ["ffmpeg by DASH", (address) => withFfmpeg(asDash(address))],
    ["mpv by HLS", withMpv],
    ["mpv by DASH", (address) => withMpv(asDash(address))],
    ["streamlink", withStreamlink, "/audio/"],
    ["VLC", withVlc],
  ])("%s", async ([, player, skipped = "nothing"]) => {
    await Promise.all(
      Object.entries(addresses).map(async ([opened, path]) => {
        const { base, answers } = await recorded();
        await player(base + path);
        const fetched = new Set(answers.map((answer) => answer.path));
        const all = await segmentsBelow(path);
        expect(all.length, opened).toBe(6);
        const wanted = all.filter((each) => !each.includes(skipped));
        expect(
          wanted.filter((each) => !fetched.has(each)),
          opened,
        ).toEqual([]);
        // 206 is the response to a player that requests a range from the first byte on.
        expect(
          answers.filter(({ status }) => status !== 200 && status !== 206),
          opened,
        ).toEqual([]);
        expect(
          wanted.every((each) => each.includes("/~")),
          opened,
        ).toBe(opened !== "public");
      }),
    );
  });
});
