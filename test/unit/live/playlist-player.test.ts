import { readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { M3U8Parser, type PlaylistLevelType } from "hls.js";
import { expect, test } from "vitest";
import { readDirectives } from "#live/playlists/directives.ts";
import { HttpError } from "#src/lib/base/errors.ts";
import { until } from "#test/support/descendants.ts";
import { atEnd, emptyFolder } from "#test/support/folder.ts";
import { Feed, segmentFile, timelineOf } from "#test/support/live-feed.ts";
import { ffmpeg, ffprobe } from "#test/support/media/sources.ts";

const SECONDS = 8;
const FRAMES_PER_SECOND = 25;
/** How many segments the stream may be ahead of the player. */
const AHEAD = 3;

/** 8 s of video and audio in segments of 1 s, and the durations of the segments. */
async function source(): Promise<{ folder: string; durations: Map<string, number[]> }> {
  const folder = emptyFolder();
  const whole = join(folder, "whole.mp4");
  const size = `testsrc2=s=320x180:r=${FRAMES_PER_SECOND}:d=${SECONDS}`;
  await ffmpeg(
    ...["-f", "lavfi", "-i", size, "-f", "lavfi", "-i", `sine=d=${SECONDS}`],
    ...["-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", `${FRAMES_PER_SECOND}`, "-c:a", "aac", whole],
  );
  const durations = new Map<string, number[]>();
  for (const [track, kind] of [
    ["720p", "v"],
    ["audio", "a"],
  ] as const) {
    await mkdir(join(folder, track));
    await ffmpeg(
      ...["-i", whole, "-map", `0:${kind}`, "-c", "copy", "-f", "hls", "-hls_time", "1", "-hls_list_size", "0"],
      ...["-hls_segment_type", "fmp4", "-hls_fmp4_init_filename", "init.mp4", "-start_number", "1"],
      ...["-hls_segment_filename", join(folder, track, "%05d.m4s"), join(folder, track, "source.m3u8")],
    );
    const playlist = readFileSync(join(folder, track, "source.m3u8"), "utf8");
    durations.set(
      track,
      [...playlist.matchAll(/#EXTINF:([\d.]+)/g)].map(([, seconds]) => Number(seconds)),
    );
  }
  return { folder, durations };
}

async function packets(file: string, stream: "v" | "a"): Promise<number> {
  const shown = ["-show_entries", "stream=nb_read_packets", "-of", "default=nw=1:nk=1"];
  return Number((await ffprobe("-select_streams", stream, "-count_packets", ...shown, file)).split("\n")[0]);
}

/** Serves a stream as a server does. `sent`: the segments that a player has read. */
async function serve(feed: Feed, folder: string): Promise<{ url: string; sent: Set<string> }> {
  const sent = new Set<string>();
  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? "/", "http://localhost");
    const [, track = "", name = ""] = url.pathname.split("/");
    try {
      if (track === "master.m3u8") response.end((await feed.timeline.waitForMultivariantPlaylist()).text);
      else if (name === "live.m3u8") {
        const playlist = await feed.timeline.waitForPlaylist(track, readDirectives(url.searchParams));
        response.end(playlist.text((uri) => `${uri}?token=1`));
      } else if (url.search === "?token=1") {
        response.end(readFileSync(join(folder, track, name)));
        sent.add(`${track}/${name}`);
      } else response.writeHead(403).end();
    } catch (error) {
      response.writeHead(error instanceof HttpError ? error.status : 500).end();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/master.m3u8`, sent };
}

test("ffmpeg plays a live stream from its first frame to its last", async () => {
  const { folder, durations } = await source();
  const feed = new Feed(timelineOf({ segmentTargetSeconds: 1 }));
  const { url, sent } = await serve(feed, folder);
  const output = join(folder, "played.mkv");
  const player = ffmpeg("-live_start_index", "0", "-i", url, "-c", "copy", output);
  // The last packet of audio is a segment of its own.
  for (let segment = 0; segment <= SECONDS; segment++) {
    for (const track of feed.tracks) {
      const seconds = durations.get(track)?.[segment];
      if (seconds) feed.whole(track, seconds);
    }
    const played = segment + 1 - AHEAD;
    if (played > 0) await until(`segment ${played} is read`, () => sent.has(`720p/${segmentFile(played)}`));
  }
  feed.timeline.ended();
  await player;
  expect(await packets(output, "v")).toBe(SECONDS * FRAMES_PER_SECOND);
  expect(await packets(output, "a")).toBe(await packets(join(folder, "audio", "source.m3u8"), "a"));
});

test("hls.js reads parts, hints, reports and delta updates", () => {
  const feed = new Feed(timelineOf({ dvrSeconds: 400 }));
  feed.segments(20);
  feed.timeline.interrupted();
  feed.timeline.resumed(Date.now());
  feed.part("720p");
  const read = (skip: boolean) =>
    M3U8Parser.parseLevelPlaylist(
      feed.text("720p", skip),
      "http://host/720p/live.m3u8",
      0,
      "main" as PlaylistLevelType,
      0,
      null,
    );
  const full = read(false);
  expect(full.playlistParsingError).toBeNull();
  expect(full).toMatchObject({ lastPartSn: 21, lastPartIndex: 0, live: true, canBlockReload: true, endCC: 1 });
  expect(full).toMatchObject({ preloadHint: { URI: "00021.1.m4s" }, renditionReports: [{ "LAST-MSN": "20" }] });
  const delta = read(true);
  expect(delta).toMatchObject({ skippedSegments: 14, lastPartSn: 21, playlistParsingError: null });
});
