import { isIP } from "node:net";
import { UserError, withoutTrailing } from "#lib/base";
import { IMPORT_SOURCES } from "#model/import-sources.ts";
import { isPage, type ProviderClient, ProviderRefused, providerClient } from "../client.ts";
import { amountOf, record, records, text, time } from "../json.ts";
import { idOf, pagesOf } from "../paging.ts";
import { oldPaths } from "../redirects.ts";
import {
  type Item,
  ItemError,
  MAX_CAPTION_BYTES,
  MAX_IMAGE_BYTES,
  type Media,
  type Provider,
  plainItem,
} from "../source.ts";

const PAGE = 100;
/** Status of a video that has all renditions, or the first one, or is encoded when it is watched (API reference, "Get Video"). */
const PLAYABLE = [3, 4, 8];
type Fields = Record<string, unknown>;

/** A library of Bunny Stream (API reference "Manage Videos", "Storage structure"). */
export const bunny: Provider = {
  ...IMPORT_SOURCES.bunny,
  async open({ env, apiUrl }) {
    const library = encodeURIComponent(env.BUNNY_LIBRARY_ID as string);
    const base = `${apiUrl ?? "https://video.bunnycdn.com"}/library/${library}/videos`;
    const cdn = cdnOf(env.BUNNY_CDN_HOSTNAME as string);
    const credentials = () => ({ AccessKey: env.BUNNY_API_KEY as string });
    const client = providerClient({ title: "Bunny", base, credentials });
    return {
      location: base,
      client,
      list: () =>
        pagesOf(async (cursor) => {
          const page = Number(cursor ?? 1);
          const answer = record(await client.json(`?page=${page}&itemsPerPage=${PAGE}&orderBy=date`));
          const videos = records(answer.items).map((video) => ({
            id: idOf(text(video.guid)),
            title: text(video.title) ?? String(video.guid),
            seconds: amountOf(video.length),
            bytes: null,
            data: null,
          }));
          const isLast = page * (amountOf(answer.itemsPerPage) ?? PAGE) >= (amountOf(answer.totalItems) ?? 0);
          return { videos, next: isLast || videos.length === 0 ? null : String(page + 1) };
        }),
      async load({ id }) {
        const video = record(await client.json(`/${encodeURIComponent(id)}`));
        return itemOf(client, video, { id, library, files: `${cdn}/${encodeURIComponent(id)}` });
      },
    };
  },
};

/** A host name, or a URL. Without a scheme it is https, except on this machine. */
function cdnOf(hostname: string): string {
  const named = withoutTrailing(hostname, "/");
  const url = /^https?:\/\//.test(named) ? named : `https://${named}`;
  if (!URL.canParse(url))
    throw new UserError("BUNNY_CDN_HOSTNAME is not a host name; use vz-1234.b-cdn.net, for example.", 2);
  const host = new URL(url).hostname;
  const isHere = host === "localhost" || host === "[::1]" || (isIP(host) === 4 && host.startsWith("127."));
  return isHere && url !== named ? `http://${named}` : url;
}

type Context = { id: string; library: string; files: string };

async function itemOf(client: ProviderClient, video: Fields, context: Context): Promise<Item> {
  const { id, library, files } = context;
  const status = amountOf(video.status);
  if (status !== null && !PLAYABLE.includes(status)) throw new ItemError(`its status at Bunny is ${status}`);
  const captions = records(video.captions).map((caption) => {
    const language = text(caption.srclang) ?? "und";
    const read = () => client.bytes(`${files}/captions/${encodeURIComponent(language)}.vtt`, MAX_CAPTION_BYTES);
    return { language, label: text(caption.label) ?? "", read };
  });
  const image = text(video.thumbnailFileName);
  const title = text(video.title) ?? id;
  const metaTags = records(video.metaTags).map(({ property, value }) => [text(property), text(value)] as const);
  const { category } = video;
  const tags = [...metaTags, ["category", text(category)] as const];
  return plainItem({
    title,
    description: text(video.description) ?? metaTags.find(([name]) => name === "description")?.[1] ?? null,
    tags: Object.fromEntries(tags.filter((each): each is [string, string] => each[0] !== null && each[1] !== null)),
    createdAt: time(video.dateUploaded),
    policy: video.isPublic === true ? "public" : "signed",
    seconds: amountOf(video.length),
    isWholeSeconds: true,
    chapters: records(video.chapters).flatMap(({ title: named, start, end }) => {
      const from = amountOf(start);
      const to = amountOf(end);
      const name = text(named);
      if (from === null || name === null) return [];
      return [{ startMs: from * 1000, title: name, ...(to !== null && { endMs: to * 1000 }) }];
    }),
    thumbnail: image === null ? null : () => client.bytes(`${files}/${encodeURIComponent(image)}`, MAX_IMAGE_BYTES),
    oldPaths: oldPaths([`/play/${library}/${id}`], [`/embed/${library}/${id}`]),
    captions,
    ...(await mediaOf(client, video, files, title)),
  });
}

/** The original, which a library may keep; else the largest MP4 rendition; else the stream. */
async function mediaOf(
  client: ProviderClient,
  video: Fields,
  files: string,
  title: string,
): Promise<{ media: Media; notes: string[]; filename: string }> {
  const bytesOf = async (url: string): Promise<number | null | false> =>
    client.retry(async () => {
      try {
        const { response } = await client.open(url);
        await response.body?.cancel();
        return isPage(response) ? false : amountOf(response.headers.get("content-length"));
      } catch (error) {
        if (error instanceof ProviderRefused) return false;
        throw error;
      }
    });
  const bytes = await bytesOf(`${files}/original`);
  const filename = /\.\w{2,5}$/.test(title) ? title : `${title}.mp4`;
  if (bytes !== false) return { media: { kind: "remote", url: `${files}/original`, bytes }, notes: [], filename };
  const heights = (text(video.availableResolutions) ?? "").split(",").map((each) => Number.parseInt(each, 10));
  for (const height of heights
    .filter((each) => each > 0)
    .sort((a, b) => b - a)
    .slice(0, 8)) {
    if (video.hasMP4Fallback !== true) break;
    const url = `${files}/play_${height}p.mp4`;
    const size = await bytesOf(url);
    const notes = [`the library keeps no original: its ${height}p rendition is imported`];
    if (size !== false) return { media: { kind: "remote", url, bytes: size }, notes, filename };
  }
  const notes = ["the library keeps no original: the best rendition of its stream is imported"];
  return { media: { kind: "hls", url: `${files}/playlist.m3u8` }, notes, filename };
}
