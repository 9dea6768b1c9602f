import { IMPORT_SOURCES } from "#model/import-sources.ts";
import { type ProviderClient, ProviderRefused, providerClient } from "../client.ts";
import { amountOf, record, records, text, time } from "../json.ts";
import { idOf, pagesOf } from "../paging.ts";
import { prepared } from "../prepare.ts";
import { oldPaths } from "../redirects.ts";
import {
  type Caption,
  type Item,
  ItemError,
  MAX_CAPTION_BYTES,
  MAX_IMAGE_BYTES,
  type Media,
  type Provider,
  plainItem,
} from "../source.ts";

type Fields = Record<string, unknown>;

/** Cloudflare Stream (API reference "Stream", guides "Download videos" and "Add captions"). It keeps no originals. */
export const cloudflare: Provider = {
  ...IMPORT_SOURCES.cloudflare,
  async open({ env, apiUrl }) {
    const account = encodeURIComponent(env.CLOUDFLARE_ACCOUNT_ID as string);
    const base = `${apiUrl ?? "https://api.cloudflare.com"}/client/v4/accounts/${account}/stream`;
    const credentials = () => ({ authorization: `Bearer ${env.CLOUDFLARE_API_TOKEN}` });
    const client = providerClient({ title: "Cloudflare", base, credentials });
    return {
      location: base,
      client,
      list: () =>
        // A page begins at the time of the last video of the one before.
        pagesOf(
          async (start) => {
            const search = new URLSearchParams({ asc: "true", ...(start !== null && { start }) });
            const result = records(record(await client.json(`?${search}`)).result);
            const videos = result.map((video) => ({
              id: idOf(text(video.uid)),
              title: titleOf(video) ?? String(video.uid),
              seconds: secondsOf(video),
              bytes: amountOf(video.size),
              data: video,
            }));
            return { videos, next: text(result.at(-1)?.created) };
          },
          { endsWithRepeats: true },
        ),
      async load({ id, data }, { isDryRun }) {
        const path = `/${encodeURIComponent(id)}`;
        const video = isDryRun ? record(data) : record(record(await client.json(path)).result);
        return itemOf(client, video, { base, id, path, isDryRun });
      },
    };
  },
};

const titleOf = (video: Fields) => text(record(video.meta).name) ?? text(record(video.publicDetails).title);
/** -1: not known. */
const secondsOf = (video: Fields) => amountOf(video.duration);

type Context = { base: string; id: string; path: string; isDryRun: boolean };

async function itemOf(client: ProviderClient, video: Fields, context: Context): Promise<Item> {
  const { base, id, path } = context;
  const state = text(record(video.status).state);
  if (video.readyToStream !== true && state !== "ready")
    throw new ItemError(`its status at Cloudflare is ${state ?? "unknown"}`);
  const isSigned = video.requireSignedURLs === true;
  const open = isSigned && !context.isDryRun ? await tokenUrls(client, context) : (url: string) => url;
  const { name: _, ...meta } = record(video.meta);
  const tags = Object.entries({ ...meta, creator: text(video.creator) }).flatMap(([key, value]) =>
    ["string", "number", "boolean"].includes(typeof value) ? [[key, value as string | number | boolean] as const] : [],
  );
  const listed = records(record(await client.json(`${path}/captions`)).result);
  const captions = listed
    .filter(({ status = "ready" }) => status === "ready")
    .map((caption): Caption => {
      const language = text(caption.language) ?? "und";
      const url = `${base}${path}/captions/${encodeURIComponent(language)}/vtt`;
      const read = () => client.bytes(url, MAX_CAPTION_BYTES, { withCredentials: true });
      return { language, label: text(caption.label) ?? "", read };
    });
  const thumbnail = text(video.thumbnail);
  const title = titleOf(video) ?? id;
  const { media, note } = await mediaOf(client, video, { ...context, open });
  return plainItem({
    title,
    filename: /\.\w{2,5}$/.test(title) ? title.replace(/\.\w+$/, ".mp4") : `${title}.mp4`,
    tags: Object.fromEntries(tags),
    createdAt: time(video.created),
    policy: isSigned ? "signed" : "public",
    seconds: secondsOf(video),
    thumbnail: thumbnail === null ? null : () => client.bytes(open(thumbnail), MAX_IMAGE_BYTES),
    oldPaths: oldPaths([`/${id}`, `/${id}/watch`], [`/${id}/iframe`]),
    media,
    captions,
    notes: [note],
  });
}

/** A token takes the place of the id in URLs of a video that requires signed ones. */
async function tokenUrls(client: ProviderClient, { id, path }: Context): Promise<(url: string) => string> {
  const body = { downloadable: true };
  const token = text(record(record(await client.json(`${path}/token`, { method: "POST", body })).result).token);
  if (token === null) throw new ItemError("Cloudflare issues no token for it");
  return (url) => url.replace(`/${id}/`, `/${token}/`);
}

type Found = { media: Media; note: string };

/** The MP4 download, which Cloudflare prepares; else the stream. */
async function mediaOf(
  client: ProviderClient,
  video: Fields,
  { path, isDryRun, open }: Context & { open: (url: string) => string },
): Promise<Found> {
  const note = "Cloudflare keeps no original: its MP4 download is imported";
  if (isDryRun) return { media: { kind: "remote", url: "", bytes: null }, note };
  const downloads = `${path}/downloads`;
  const lookAt = (answer: unknown) => {
    const { status, url } = record(record(record(answer).result).default);
    if (status === "ready") return text(url);
    return status === "inprogress" || status === "pending" ? ("waiting" as const) : null;
  };
  const url = await client
    .json(downloads, { method: "POST", body: {} })
    .then(async (answer) => {
      const first = lookAt(answer);
      return first === "waiting" ? prepared(async () => lookAt(await client.json(downloads))) : first;
    })
    .catch((error) => {
      if (error instanceof ProviderRefused && error.status !== 401) return null;
      throw error;
    });
  if (url !== null) return { media: { kind: "remote", url: open(url), bytes: null }, note };
  const hls = text(record(video.playback).hls);
  if (hls === null) throw new ItemError("Cloudflare offers no download and no stream of it");
  return {
    media: { kind: "hls", url: open(hls) },
    note: "Cloudflare offers no download: the best rendition of its stream is imported",
  };
}
