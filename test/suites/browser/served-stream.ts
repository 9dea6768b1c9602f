import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { readDirectives } from "#live/playlists/directives.ts";
import { readPartName } from "#live/playlists/names.ts";
import { LiveTimeline } from "#live/playlists/timeline.ts";
import { HttpError } from "#src/lib/base/errors.ts";
import { atEnd, emptyFolder } from "#test/support/folder.ts";
import { fast, ffmpeg } from "#test/support/media/sources.ts";

/** A stream in real time without a publisher: fragments of files, announced by a timeline, and served. */

const PART_MS = 500;
const PARTS_PER_SEGMENT = 4;

/** A track as a packager makes it: each fragment is a part. A packet of AAC has 1024 samples: 24 of them are 0.512 s. */
type Track = { name: string; init: Buffer; fragments: Buffer[]; partSeconds: number };

export async function sourceTracks(seconds: number): Promise<Track[]> {
  const folder = emptyFolder();
  const fragmented = ["-movflags", "empty_moov+default_base_moof", "-frag_duration", `${PART_MS * 1000}`, "-f", "mp4"];
  const video = join(folder, "video.mp4");
  const size = `testsrc2=s=320x180:r=30:d=${seconds}`;
  await ffmpeg("-f", "lavfi", "-i", size, ...fast, "-pix_fmt", "yuv420p", "-g", "60", "-bf", "0", ...fragmented, video);
  const audio = join(folder, "audio.mp4");
  await ffmpeg("-f", "lavfi", "-i", `sine=r=48000:d=${seconds + 1}`, "-c:a", "aac", ...fragmented, audio);
  return [
    { name: "180p", ...fragmentsOf(readFileSync(video)), partSeconds: 0.5 },
    { name: "audio", ...fragmentsOf(readFileSync(audio)), partSeconds: 0.512 },
  ];
}

function fragmentsOf(file: Buffer): { init: Buffer; fragments: Buffer[] } {
  const starts: number[] = [];
  let end = file.length;
  for (let at = 0; at < file.length; at += file.readUInt32BE(at)) {
    const type = file.toString("latin1", at + 4, at + 8);
    if (type === "moof") starts.push(at);
    if (type === "mfra") end = at;
  }
  return {
    init: file.subarray(0, starts[0]),
    fragments: starts.map((start, index) => file.subarray(start, starts[index + 1] ?? end)),
  };
}

const segmentOf = ({ fragments }: Track, segment: number) =>
  Buffer.concat(fragments.slice((segment - 1) * PARTS_PER_SEGMENT, segment * PARTS_PER_SEGMENT));

/** Half a minute can be played. */
export function newTimeline(): LiveTimeline {
  const timeline = new LiveTimeline({
    startedAtMs: Date.now(),
    dvrSeconds: 30,
    isLowLatency: true,
    playlistName: "live.m3u8",
    partTargetSeconds: 0.52,
    segmentTargetSeconds: 2,
  });
  timeline.init({ track: "180p", kind: "video", codec: "avc1.64000d", width: 320, height: 180, frameRate: 30 });
  timeline.init({ track: "audio", kind: "audio", codec: "mp4a.40.2", channels: 1 });
  return timeline;
}

/** The publisher leaves before the part with this index, and is back after `ms`. */
type Interruption = { part: number; ms: number };

/** Publishes the tracks in real time, to their end. */
export async function publish(timeline: LiveTimeline, tracks: Track[], interruption?: Interruption): Promise<void> {
  const parts = Math.min(...tracks.map(({ fragments }) => fragments.length));
  for (let index = 0; index < parts - (parts % PARTS_PER_SEGMENT); index++) {
    await sleep(PART_MS);
    if (index === interruption?.part) {
      timeline.interrupted();
      // Real time: players wait for the publisher.
      await sleep(interruption.ms);
      timeline.resumed(Date.now());
    }
    const segment = Math.floor(index / PARTS_PER_SEGMENT) + 1;
    const part = index % PARTS_PER_SEGMENT;
    for (const track of tracks) {
      const { name, fragments, partSeconds } = track;
      const offset = fragments.slice(index - part, index).reduce((sum, { length }) => sum + length, 0);
      const isLast = part === PARTS_PER_SEGMENT - 1;
      timeline.part({
        track: name,
        segment,
        part,
        offset,
        isLast,
        durationSeconds: partSeconds,
        bytes: fragments[index]?.length ?? 0,
        isIndependent: name === "audio" || part === 0,
        startSeconds: index * partSeconds,
      });
      // Video and audio do not arrive at once: the playlists differ for a moment.
      await sleep(20);
      if (!isLast) continue;
      timeline.segment({
        track: name,
        segment,
        bytes: segmentOf(track, segment).length,
        durationSeconds: PARTS_PER_SEGMENT * partSeconds,
        startSeconds: (index - part) * partSeconds,
        name: `${String(segment).padStart(5, "0")}.m4s`,
      });
    }
  }
  timeline.ended();
}

/** Serves a stream, files by their path, and notes the requests. */
export async function serveStream(
  timeline: LiveTimeline,
  tracks: Track[],
  files: Record<string, string | Buffer> = {},
): Promise<{ url: string; requests: string[] }> {
  const requests: string[] = [];
  const answer = async (url: URL, signal: AbortSignal): Promise<string | Buffer> => {
    const file = files[url.pathname];
    if (file !== undefined) return file;
    const [, first = "", name = ""] = url.pathname.split("/");
    if (first === "master.m3u8") return (await timeline.waitForMultivariantPlaylist(signal)).text;
    if (name === "live.m3u8")
      return (await timeline.waitForPlaylist(first, readDirectives(url.searchParams), signal)).text();
    const track = tracks.find((each) => each.name === first) as Track;
    if (name === "init.mp4") return track.init;
    const part = readPartName(name);
    if (!part) return segmentOf(track, Number.parseInt(name, 10));
    const { segment, offset, bytes } = await timeline.waitForPart(first, part, signal);
    return segmentOf(track, segment).subarray(offset, offset + bytes);
  };
  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? "/", "http://localhost");
    requests.push(url.pathname + url.search);
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    try {
      response.end(await answer(url, gone.signal));
    } catch (error) {
      response.writeHead(error instanceof HttpError ? error.status : 500).end();
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, requests };
}
