import { IMPORT_SOURCES } from "#model/import-sources.ts";
import { type ProviderClient, providerClient } from "../client.ts";
import { amountOf, named, record, records, text, time } from "../json.ts";
import { idOf, pagesOf } from "../paging.ts";
import {
  type Caption,
  type Item,
  ItemError,
  type Listed,
  MAX_CAPTION_BYTES,
  MAX_IMAGE_BYTES,
  type Media,
  type Provider,
  plainItem,
} from "../source.ts";
import { assetOf, masterOf } from "./mux-master.ts";

/** The limit of the API. */
const PAGE = 100;
type Fields = Record<string, unknown>;
type Origins = { stream: string; image: string };

/** Mux Video (API reference "Assets", guide "Download your videos"). */
export const mux: Provider = {
  ...IMPORT_SOURCES.mux,
  async open({ env, apiUrl }) {
    const base = apiUrl ?? "https://api.mux.com";
    const origins = apiUrl
      ? { stream: `${apiUrl}/stream`, image: `${apiUrl}/image` }
      : { stream: "https://stream.mux.com", image: "https://image.mux.com" };
    const token = Buffer.from(`${env.MUX_TOKEN_ID}:${env.MUX_TOKEN_SECRET}`).toString("base64");
    const client = providerClient({ title: "Mux", base, credentials: () => ({ authorization: `Basic ${token}` }) });
    return {
      location: `${base} ${env.MUX_TOKEN_ID}`,
      client,
      list: () =>
        pagesOf(async (cursor) => {
          const [kind = "page", value = "1"] = cursor?.split("=", 2) ?? [];
          const answer = record(
            await client.json(`/video/v1/assets?limit=${PAGE}&${kind}=${encodeURIComponent(value)}`),
          );
          const videos = records(answer.data).map(listedOf);
          const next = text(answer.next_cursor);
          // Versions of the API without cursors have numbered pages.
          const numbered = "next_cursor" in answer || videos.length < PAGE ? null : `page=${Number(value) + 1}`;
          return { videos, next: next === null ? numbered : `cursor=${next}` };
        }),
      async load({ id, data }, { isDryRun }) {
        const asset = isDryRun ? record(data) : await assetOf(client, id);
        return itemOf(client, asset, { id, origins, isDryRun });
      },
    };
  },
};

const listedOf = (asset: Fields): Listed => ({
  id: idOf(text(asset.id)),
  title: text(record(asset.meta).title) ?? String(asset.id),
  seconds: amountOf(asset.duration),
  bytes: null,
  data: asset,
});

type Context = { id: string; origins: Origins; isDryRun: boolean };

async function itemOf(client: ProviderClient, asset: Fields, context: Context): Promise<Item> {
  const { id, origins } = context;
  if (asset.status !== "ready") throw new ItemError(`its status at Mux is ${text(asset.status) ?? "unknown"}`);
  const playbackIds = records(asset.playback_ids).flatMap(({ id: each, policy }) => {
    const playbackId = text(each);
    return playbackId === null ? [] : [{ id: encodeURIComponent(playbackId), isPublic: policy === "public" }];
  });
  const open = playbackIds.find(({ isPublic }) => isPublic)?.id ?? null;
  const { media, note } = await mediaOf(client, asset, { ...context, open });
  const meta = record(asset.meta);
  const texts = records(asset.tracks).filter(
    ({ type, status = "ready", text_type = "subtitles" }) =>
      type === "text" && status === "ready" && text_type === "subtitles",
  );
  const captions = texts.map(
    (track): Caption => ({
      language: text(track.language_code) ?? "und",
      label: text(track.name) ?? "",
      isForDeaf: track.closed_captions === true,
      async read() {
        if (open === null) throw new ItemError("Mux serves them for public playback ids only");
        const track_id = encodeURIComponent(text(track.id) ?? "");
        return client.bytes(`${origins.stream}/${open}/text/${track_id}.vtt`, MAX_CAPTION_BYTES);
      },
    }),
  );
  return plainItem({
    title: text(meta.title) ?? id,
    filename: `${text(meta.title) ?? id}.mp4`,
    tags: named({
      creator_id: text(meta.creator_id),
      external_id: text(meta.external_id),
      passthrough: text(asset.passthrough),
    }),
    createdAt: time(asset.created_at),
    policy: playbackIds.length === 0 ? null : open === null ? "signed" : "public",
    seconds: amountOf(asset.duration),
    thumbnail: open === null ? null : () => client.bytes(`${origins.image}/${open}/thumbnail.jpg`, MAX_IMAGE_BYTES),
    // Those of player.mux.com.
    oldPaths: playbackIds.map((each) => ({ path: `/${each.id}`, to: "embed" })),
    media,
    captions,
    notes: note === null ? [] : [note],
  });
}

type Found = { media: Media; note: string | null };

/** The master, else the largest static rendition, else the stream. */
async function mediaOf(
  client: ProviderClient,
  asset: Fields,
  { id, origins, isDryRun, open }: Context & { open: string | null },
): Promise<Found> {
  const master = isDryRun ? (text(record(asset.master).url) ?? "") : await masterOf(client, asset, id);
  if (master !== null) return { media: { kind: "remote", url: master, bytes: null }, note: null };
  if (open === null) throw new ItemError("Mux has no master of it, and it has no public playback id");
  const [best] = records(record(asset.static_renditions).files)
    .filter(({ ext, status = "ready" }) => ext === "mp4" && status === "ready")
    .toSorted((a, b) => (amountOf(b.height) ?? 0) - (amountOf(a.height) ?? 0));
  const name = text(best?.name);
  if (best && name !== null) {
    const media: Media = {
      kind: "remote",
      url: `${origins.stream}/${open}/${encodeURIComponent(name)}`,
      bytes: amountOf(best.filesize),
    };
    return { media, note: `Mux has no master: its static rendition ${name} is imported` };
  }
  const note = "Mux has no master: the best rendition of its stream is imported";
  return { media: { kind: "hls", url: `${origins.stream}/${open}.m3u8` }, note };
}
