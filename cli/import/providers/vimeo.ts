import { IMPORT_SOURCES } from "#model/import-sources.ts";
import { type ProviderClient, providerClient } from "../client.ts";
import { amountOf, chaptersOf, flags, record, records, text, time } from "../json.ts";
import { idOf, pagesOf } from "../paging.ts";
import { oldPaths } from "../redirects.ts";
import {
  type Item,
  ItemError,
  type Listed,
  MAX_CAPTION_BYTES,
  MAX_IMAGE_BYTES,
  type Media,
  type Provider,
  plainItem,
} from "../source.ts";

/** The limit of the API. */
const PAGE = 100;
/** Responses are short, and the limit of requests is higher, with the fields that are needed. */
const FIELDS =
  "uri,name,description,duration,created_time,status,privacy.view,tags.name,pictures.base_link,pictures.sizes,download,files";
/** Values of `privacy.view` for videos that everybody with the link may watch. */
const OPEN = ["anybody", "unlisted", "disable"];
const ACCEPT = { accept: "application/vnd.vimeo.*+json;version=3.4" };
type Fields = Record<string, unknown>;

/** The videos of a Vimeo account (API reference "Videos"; download links need the scope `video_files`). */
export const vimeo: Provider = {
  ...IMPORT_SOURCES.vimeo,
  async open({ env, apiUrl }) {
    const base = apiUrl ?? "https://api.vimeo.com";
    const credentials = () => ({ authorization: `bearer ${env.VIMEO_ACCESS_TOKEN}` });
    const client = providerClient({ title: "Vimeo", base, credentials });
    const get = async (path: string) => record(await client.json(path, { headers: ACCEPT }));
    return {
      // A token belongs to one account, and may be replaced.
      location: base,
      client,
      list: () =>
        pagesOf(async (cursor) => {
          const answer = await get(cursor ?? `/me/videos?per_page=${PAGE}&sort=date&direction=asc&fields=${FIELDS}`);
          const next = text(record(answer.paging).next);
          if (next !== null && !/^\/[^/]/.test(next)) throw new ItemError("Vimeo names a next page that is no path");
          return { videos: records(answer.data).map(listedOf), next };
        }),
      async load({ id, data }, { isDryRun }) {
        const path = `/videos/${encodeURIComponent(id)}`;
        const video = isDryRun ? record(data) : await get(`${path}?fields=${FIELDS}`);
        return itemOf({ client, path, id }, video);
      },
    };
  },
};

/** A URI is `/videos/123`, and of unlisted videos may end with a hash after a colon. */
const listedOf = (video: Fields): Listed => ({
  id: idOf(/^\/videos\/([\w:.-]{1,100})$/.exec(text(video.uri) ?? "")?.[1] ?? null),
  title: text(video.name) ?? String(video.uri),
  seconds: amountOf(video.duration),
  bytes: bestDownload(video)?.bytes ?? null,
  data: video,
});

type Context = { client: ProviderClient; path: string; id: string };

async function itemOf({ client, path, id }: Context, video: Fields): Promise<Item> {
  if (video.status !== undefined && video.status !== "available")
    throw new ItemError(`its status at Vimeo is ${text(video.status) ?? "unknown"}`);
  const optional = (below: string) => client.optional(path + below, { headers: ACCEPT });
  const captions = records((await optional(`/texttracks?per_page=${PAGE}`)).data).flatMap((track) => {
    const link = text(track.link);
    const read = () => client.bytes(link ?? "", MAX_CAPTION_BYTES);
    return link === null ? [] : [{ language: text(track.language) ?? "und", label: text(track.name) ?? "", read }];
  });
  const chapters = chaptersOf((await optional(`/chapters?per_page=${PAGE}`)).data);
  const thumbnails = record(video.pictures);
  const [largest] = records(thumbnails.sizes).toSorted((a, b) => (amountOf(b.width) ?? 0) - (amountOf(a.width) ?? 0));
  const image = text(largest?.link);
  const title = text(video.name) ?? id;
  return plainItem({
    title,
    filename: /\.\w{2,5}$/.test(title) ? title : `${title}.mp4`,
    description: text(video.description),
    tags: flags(records(video.tags).map(({ name, tag }) => text(name) ?? text(tag))),
    createdAt: time(video.created_time),
    policy: OPEN.includes(text(record(video.privacy).view) ?? "") ? "public" : "signed",
    seconds: amountOf(video.duration),
    isWholeSeconds: true,
    thumbnail: image === null ? null : () => client.bytes(image, MAX_IMAGE_BYTES),
    oldPaths: oldPaths([`/${id.replace(":", "/")}`], [`/video/${id.split(":")[0]}`]),
    captions,
    chapters,
    ...mediaOf(video),
  });
}

type Download = { url: string; bytes: number | null; isSource: boolean; name: string };

/** The original; else the file with the largest image. */
function bestDownload(video: Fields): Download | null {
  const files = [...records(video.download), ...records(video.files)].flatMap((file) => {
    const url = text(file.link);
    if (url === null || file.quality === "hls" || file.quality === "dash") return [];
    const isSource = file.quality === "source" || file.type === "source";
    const name = text(file.public_name) ?? text(file.rendition) ?? `${text(file.height) ?? "largest"}p`;
    return [{ url, bytes: amountOf(file.size), isSource, name, height: amountOf(file.height) ?? 0 }];
  });
  return files.toSorted((a, b) => Number(b.isSource) - Number(a.isSource) || b.height - a.height)[0] ?? null;
}

function mediaOf(video: Fields): { media: Media; notes: string[] } {
  const best = bestDownload(video);
  if (best !== null) {
    const { url, bytes, isSource, name } = best;
    const notes = isSource ? [] : [`Vimeo offers no original: its rendition ${name} is imported`];
    return { media: { kind: "remote", url, bytes }, notes };
  }
  const stream = text(records(video.files).find(({ quality }) => quality === "hls")?.link);
  if (stream === null)
    throw new ItemError(
      "Vimeo offers no files of it: the token needs the scope video_files, and the account a plan with downloads",
    );
  const notes = ["Vimeo offers no files: the best rendition of its stream is imported"];
  return { media: { kind: "hls", url: stream }, notes };
}
