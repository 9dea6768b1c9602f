import { Agent, get } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

/** One track of a viewer: requests each playlist before it exists, and then the parts that it names. */
type Track = { playlist: string; msn: number; part: number; seen: Set<string> };

/** What viewers of a low-latency stream have received. Seconds, but `requests` and `bytes`. */
export type Audience = {
  viewers: number;
  requests: number;
  bytes: number;
  /** Viewers whose media arrived later than a player with three part targets in its buffer can wait. */
  stalled: number;
  /** The latest that media arrived, after the moment at which the viewer would play them without a buffer. */
  latest: number;
};

/** The distance from the end at which players begin: PART-HOLD-BACK of three parts. */
const BUFFER_SECONDS = 1.5;

/** `count` viewers read the stream for `seconds`, as players do: playlists and parts of all tracks, by blocking requests. */
export async function watchTogether(master: string, count: number, seconds: number): Promise<Audience> {
  const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });
  const totals: Audience = { viewers: count, requests: 0, bytes: 0, stalled: 0, latest: 0 };
  const read = (url: string) =>
    new Promise<Buffer>((resolve, reject) => {
      get(url, { agent }, (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () => {
          totals.requests++;
          const body = Buffer.concat(chunks);
          totals.bytes += body.length;
          if (response.statusCode === 200) resolve(body);
          else reject(new Error(`${response.statusCode} for ${url}: ${body}`));
        });
      }).on("error", reject);
    });

  const end = performance.now() + seconds * 1000;
  async function view(): Promise<void> {
    const list = (await read(master)).toString();
    const uris = [...list.matchAll(/^[^#\s].*$|URI="([^"]+)"/gm)].map(
      ([line, uri]) => new URL(uri ?? line, master).href,
    );
    const lateness = await Promise.all(
      [...new Set(uris)].map((playlist) => follow({ playlist, msn: -1, part: 0, seen: new Set() })),
    );
    const latest = Math.max(...lateness);
    totals.latest = Math.max(totals.latest, latest);
    if (latest > BUFFER_SECONDS) totals.stalled++;
  }

  /** Resolves with how late the media were at most. */
  async function follow(track: Track): Promise<number> {
    let media = 0;
    let startedAt = 0;
    let latest = 0;
    while (performance.now() < end) {
      const query = track.msn < 0 ? "" : `?_HLS_msn=${track.msn}&_HLS_part=${track.part}`;
      const text = (await read(track.playlist + query)).toString();
      const fresh = newParts(text, track);
      for (const { uri } of fresh) await read(new URL(uri, track.playlist).href);
      if (startedAt === 0) startedAt = performance.now();
      else media += fresh.reduce((sum, part) => sum + part.seconds, 0);
      latest = Math.max(latest, (performance.now() - startedAt) / 1000 - media);
    }
    return latest;
  }

  await Promise.all(
    Array.from({ length: count }, async (_, index) => {
      // They come one after another, within two seconds.
      await sleep((index * 2000) / count);
      await view();
    }),
  );
  agent.destroy();
  return totals;
}

/** The parts that the viewer does not have, at first only the last one; sets what it asks for next. */
function newParts(text: string, track: Track): { uri: string; seconds: number }[] {
  const isFirst = track.msn < 0;
  let msn = Number(/#EXT-X-MEDIA-SEQUENCE:(\d+)/.exec(text)?.[1]);
  let part = 0;
  const parts: { uri: string; seconds: number }[] = [];
  for (const line of text.split("\n")) {
    if (line.startsWith("#EXT-X-PART:")) {
      part++;
      const uri = /URI="([^"]+)"/.exec(line)?.[1] as string;
      if (track.seen.has(uri)) continue;
      track.seen.add(uri);
      parts.push({ uri, seconds: Number(/DURATION=([\d.]+)/.exec(line)?.[1]) });
    } else if (line !== "" && !line.startsWith("#")) {
      msn++;
      part = 0;
    }
  }
  track.msn = msn;
  track.part = part;
  return isFirst ? parts.slice(-1) : parts;
}
