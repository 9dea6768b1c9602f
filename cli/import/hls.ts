import { mkdir, open, rm } from "node:fs/promises";
import { join } from "node:path";
import { type HlsSegment, type HlsVariant, hlsAttributes, linesOf, readHls, type Span } from "#lib/manifests";
import { type Binaries, run, untrustedInput } from "#media/ffmpeg.ts";
import type { ProviderClient } from "./client.ts";
import { ItemError } from "./source.ts";

const MAX_PLAYLIST_BYTES = 8 * 2 ** 20;
const MAX_SEGMENT_BYTES = 512 * 2 ** 20;

type Taking = {
  client: ProviderClient;
  url: string;
  /** Working directory, which is emptied first. */
  dir: string;
  maxBytes: number;
  binaries(): Promise<Binaries>;
  onBytes(bytes: number): void;
};

/**
 * Downloads the best rendition of a stream as one file: its segments one after another, with the audio of a separate group
 * multiplexed into it, without encoding. Returns the path. Throws ItemError for a stream that is encrypted, live or malformed.
 */
export async function takeHls({ client, url, dir, maxBytes, binaries, onBytes }: Taking): Promise<string> {
  await rm(dir, { recursive: true, force: true });
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const budget = { left: maxBytes };
  const text = await playlistAt(client, url);
  const master = parsedPlaylist(text);
  if (!master.isMaster) return takeSegments(client, url, master.segments, { dir, name: "video", budget, onBytes });
  const best = bestOf(master.variants);
  const audioUri = audioOf(text, best);
  const take = async (uri: string, name: string) => {
    const at = new URL(uri, url).href;
    const { isMaster, segments } = parsedPlaylist(await playlistAt(client, at));
    if (isMaster) throw new ItemError("the playlist of the stream is malformed");
    return takeSegments(client, at, segments, { dir, name, budget, onBytes });
  };
  const video = await take(best.uri, "video");
  if (audioUri === null) return video;
  const audio = await take(audioUri, "audio");
  const out = join(dir, "both.mp4");
  const { ffmpeg } = await binaries();
  const args = [
    ...["-y", "-nostdin", ...untrustedInput(video), ...untrustedInput(audio)],
    ...["-map", "0:v", "-map", "1:a", "-c", "copy", "-f", "mp4", out],
  ];
  await run(ffmpeg, { args, cwd: dir, timeLimitMs: null }).catch((error: Error) => {
    throw new ItemError(`the audio of the stream cannot be joined with its video: ${error.message}`);
  });
  await rm(video);
  await rm(audio);
  return out;
}

const playlistAt = async (client: ProviderClient, url: string) =>
  Buffer.from(await client.bytes(url, MAX_PLAYLIST_BYTES)).toString("utf8");

function parsedPlaylist(text: string) {
  const playlist = readHls(text);
  const [fault] = playlist.faults.filter(({ code }) => code !== "playlist_unsupported");
  if (fault) throw new ItemError(`the playlist of the stream is malformed: line ${fault.line}: ${fault.message}`);
  return playlist;
}

/** The largest image; of several with the same, the highest bitrate. */
function bestOf(variants: readonly HlsVariant[]): HlsVariant {
  const height = ({ attributes }: HlsVariant) =>
    Number(/x(\d{1,6})$/.exec(attributes.get("RESOLUTION") ?? "")?.[1] ?? 0);
  const bandwidth = ({ attributes }: HlsVariant) => Number(attributes.get("BANDWIDTH") ?? 0);
  const [best] = variants.toSorted((a, b) => height(b) - height(a) || bandwidth(b) - bandwidth(a));
  if (!best) throw new ItemError("the stream has no renditions");
  return best;
}

/** The playlist of the variant's audio, when it is not in the same segments: the default of its group, or the first. */
function audioOf(master: string, { attributes }: HlsVariant): string | null {
  const group = attributes.get("AUDIO");
  if (group === undefined) return null;
  const uris: { uri: string | undefined; isDefault: boolean }[] = [];
  for (const line of linesOf(master)) {
    if (!line.startsWith("#EXT-X-MEDIA:")) continue;
    const media = new Map([...hlsAttributes(line, 13)].map(({ name, value }) => [name, value]));
    if (media.get("TYPE") === "AUDIO" && media.get("GROUP-ID") === group)
      uris.push({ uri: media.get("URI"), isDefault: media.get("DEFAULT") === "YES" });
  }
  return (uris.find(({ isDefault }) => isDefault) ?? uris[0])?.uri ?? null;
}

type Into = { dir: string; name: string; budget: { left: number }; onBytes(bytes: number): void };

async function takeSegments(
  client: ProviderClient,
  base: string,
  segments: readonly HlsSegment[],
  { dir, name, budget, onBytes }: Into,
): Promise<string> {
  if (segments.some(({ isEncrypted }) => isEncrypted)) throw new ItemError("the stream is encrypted");
  const path = join(dir, name + (segments[0]?.map ? ".mp4" : ".ts"));
  const file = await open(path, "w", 0o600);
  try {
    let map = "";
    const append = async ({ uri, span }: { uri: string; span: Span | null }) => {
      const limit = Math.min(MAX_SEGMENT_BYTES, budget.left);
      const headers: Record<string, string> = span ? { range: `bytes=${span.start}-${span.end}` } : {};
      const bytes = await client.bytes(new URL(uri, base).href, limit, { headers });
      const length = span ? span.end - span.start + 1 : bytes.length;
      // A server that ignores ranges sends the whole file.
      const part = bytes.length > length ? bytes.subarray(span?.start ?? 0, (span?.end ?? 0) + 1) : bytes;
      if (part.length !== length) throw new ItemError("a segment of the stream is incomplete");
      budget.left -= part.length;
      await file.appendFile(part);
      onBytes(part.length);
    };
    for (const segment of segments) {
      const named = segment.map ? JSON.stringify(segment.map) : "";
      if (segment.map && named !== map) await append(segment.map);
      map = named;
      await append(segment);
    }
  } finally {
    await file.close();
  }
  return path;
}
