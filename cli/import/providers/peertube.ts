import { UserError, withoutTrailing } from "#lib/base";
import { IMPORT_SOURCES } from "#model/import-sources.ts";
import { type ProviderClient, providerClient } from "../client.ts";
import { amountOf, chaptersOf, flags, named, record, records, text, time } from "../json.ts";
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
import { session } from "./peertube-session.ts";

const PAGE = 100;
/** Privacy of videos that everybody may watch: public, unlisted (constants of PeerTube). */
const OPEN = [1, 2];
const PUBLISHED = 1;
type Fields = Record<string, unknown>;

/** The videos of a user of a PeerTube server (REST API reference, "Video", "Session"). */
export const peertube: Provider = {
  ...IMPORT_SOURCES.peertube,
  async open({ env, apiUrl }) {
    const base = apiUrl ?? withoutTrailing(env.PEERTUBE_URL as string, "/");
    if (!/^https?:\/\//.test(base) || !URL.canParse(base))
      throw new UserError("PEERTUBE_URL is not a URL; use https://peertube.example.com, for example.", 2);
    const credentials = session(base, env);
    const client = providerClient({ title: "PeerTube", base, credentials });
    return {
      location: `${base} ${env.PEERTUBE_USERNAME}`,
      client,
      list: () =>
        pagesOf(async (cursor) => {
          const start = Number(cursor ?? 0);
          const path = `/api/v1/users/me/videos?start=${start}&count=${PAGE}&sort=createdAt`;
          const answer = record(await client.json(path));
          const videos = records(answer.data).map((video) => ({
            id: idOf(text(video.uuid)),
            title: text(video.name) ?? String(video.uuid),
            seconds: amountOf(video.duration),
            bytes: null,
            data: null,
          }));
          const end = start + videos.length;
          return { videos, next: videos.length > 0 && end < (amountOf(answer.total) ?? 0) ? String(end) : null };
        }),
      load: ({ id }) => itemOf(client, base, id),
    };
  },
};

async function itemOf(client: ProviderClient, base: string, id: string): Promise<Item> {
  const path = `/api/v1/videos/${encodeURIComponent(id)}`;
  const video = record(await client.json(path));
  if (video.isLive === true) throw new ItemError("it is a live stream");
  const state = record(video.state);
  if (state.id !== undefined && state.id !== PUBLISHED)
    throw new ItemError(`its state at PeerTube is ${text(state.label) ?? state.id}`);
  const source = await client.optional(`${path}/source`);
  const subtitles = await client.optional(`${path}/captions`);
  const chapters = await client.optional(`${path}/chapters`);
  const at = (url: string) => new URL(url, `${base}/`).href;
  const { media, filename, notes } = mediaOf(video, source, at);
  const captions = records(subtitles.data).flatMap((caption) => {
    const url = text(caption.fileUrl) ?? text(caption.captionPath);
    const { id: language, label } = record(caption.language);
    const read = () => client.bytes(at(url ?? ""), MAX_CAPTION_BYTES, { withCredentials: true });
    return url === null ? [] : [{ language: text(language) ?? "und", label: text(label) ?? "", read }];
  });
  // Versions before 8 have paths.
  const [largest] = records(video.thumbnails).toSorted((a, b) => (amountOf(b.width) ?? 0) - (amountOf(a.width) ?? 0));
  const image = text(largest?.fileUrl) ?? text(video.previewPath) ?? text(video.thumbnailPath);
  const labelOf = (field: unknown) => (record(field).id === null ? null : text(record(field).label));
  const labels = {
    category: labelOf(video.category),
    licence: labelOf(video.licence),
    language: labelOf(video.language),
  };
  const ids = [text(video.shortUUID), id].filter((each) => each !== null);
  return plainItem({
    title: text(video.name) ?? id,
    description: text(video.description),
    tags: { ...flags(Array.isArray(video.tags) ? video.tags.map(text) : []), ...named(labels) },
    createdAt: time(video.createdAt) ?? time(video.publishedAt),
    policy: OPEN.includes(amountOf(record(video.privacy).id) ?? 0) ? "public" : "signed",
    seconds: amountOf(video.duration),
    isWholeSeconds: true,
    chapters: chaptersOf(chapters.chapters),
    thumbnail: image === null ? null : () => client.bytes(at(image), MAX_IMAGE_BYTES, { withCredentials: true }),
    oldPaths: oldPaths(
      ids.flatMap((each) => [`/w/${each}`, `/videos/watch/${each}`]),
      ids.map((each) => `/videos/embed/${each}`),
    ),
    media,
    filename,
    captions,
    notes,
  });
}

type Found = { media: Media; filename: string; notes: string[] };

/** The original, which a server may keep; else the largest file with video and audio; else the stream. */
function mediaOf(video: Fields, source: Fields, at: (url: string) => string): Found {
  const name = text(video.name) ?? "video";
  const original = text(source.fileDownloadUrl);
  if (original !== null) {
    const filename = text(source.inputFilename) ?? text(source.filename) ?? name;
    const media: Media = { kind: "remote", url: at(original), bytes: amountOf(source.size), withCredentials: true };
    return { media, filename, notes: [] };
  }
  const playlists = records(video.streamingPlaylists);
  const [best] = [...records(video.files), ...playlists.flatMap(({ files }) => records(files))]
    .filter(({ hasAudio, hasVideo }) => hasAudio !== false && hasVideo !== false)
    .toSorted((a, b) => (amountOf(record(b.resolution).id) ?? 0) - (amountOf(record(a.resolution).id) ?? 0));
  const url = best && (text(best.fileDownloadUrl) ?? text(best.fileUrl));
  if (best && url) {
    const media: Media = { kind: "remote", url: at(url), bytes: amountOf(best.size), withCredentials: true };
    const label = text(record(best.resolution).label) ?? "largest";
    return {
      media,
      filename: `${name}.mp4`,
      notes: [`the server keeps no original: its ${label} rendition is imported`],
    };
  }
  const stream = text(playlists[0]?.playlistUrl);
  if (stream === null) throw new ItemError("PeerTube lists no files of it");
  const notes = ["the server keeps no original: the best rendition of its stream is imported"];
  return { media: { kind: "hls", url: at(stream) }, filename: `${name}.mp4`, notes };
}
