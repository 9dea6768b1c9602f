import { png } from "../png.ts";
import { CAPTION, CREATED, SECONDS, type StandInVideo } from "./library.ts";
import { type Answer, type Context, MEDIA, type Routes, type StandIn } from "./stand-in.ts";

/** A provider's API by its public documentation, and how a user names it to `vodbox import`. */
export type StandInProvider = {
  name: string;
  routes: Routes;
  isAllowed(headers: Record<string, unknown>): boolean;
  env(standIn: StandIn): Record<string, string>;
  args: string[];
  /** No URLs that expire. */
  hasChapters?: boolean;
};

const pageOf = ({ videos, pageSize }: Context, number: number) =>
  videos.slice((number - 1) * pageSize, number * pageSize);
const CHAPTERS = [
  { title: "One", timecode: 0 },
  { title: "Two", timecode: 1 },
];
export const SECRET = "s3cret-of-the-provider";

const muxAsset = (video: StandInVideo, { linkOf }: Context, withMaster: boolean) => ({
  id: video.id,
  status: "ready",
  created_at: String(Date.parse(CREATED) / 1000),
  duration: SECONDS,
  meta: { title: video.title, external_id: "own-1" },
  playback_ids: [{ id: `play${video.id}`, policy: video.isPublic ? "public" : "signed" }],
  tracks: [
    { type: "video", id: "v" },
    ...video.captions.map((language) => ({
      type: "text",
      text_type: "subtitles",
      status: "ready",
      id: `t-${language}`,
      language_code: language,
      name: language,
      closed_captions: true,
    })),
  ],
  ...(withMaster && { master_access: "temporary", master: { status: "ready", url: linkOf(video) } }),
});

/** Assets whose master has been asked for. */
const mastered = new Set<string>();
const mux: Routes = ({ method, path, query }, context) => {
  if (path.startsWith("/image/")) return png(64, 36);
  if (path.startsWith("/stream/")) return path.endsWith(".vtt") ? CAPTION : null;
  if (path === "/video/v1/assets") {
    const at = Number(query.get("cursor") ?? 1);
    const data = pageOf(context, at).map((video) => muxAsset(video, context, false));
    return { data, next_cursor: at * context.pageSize < context.videos.length ? String(at + 1) : null };
  }
  const video = context.videoIn(path);
  if (!video) return null;
  if (method === "PUT" && path.endsWith("/master-access")) {
    mastered.add(video.id);
    return { data: { master: { status: "preparing" } } };
  }
  return { data: muxAsset(video, context, mastered.has(video.id)) };
};

const cloudflare: Routes = ({ method, path, query }, { cdn, linkOf, videos, pageSize, videoIn }) => {
  const createdAt = (index: number) => new Date(Date.parse(CREATED) + index * 1000).toISOString();
  const base = "/client/v4/accounts/acc/stream";
  const wrap = (result: unknown): Answer => ({ success: true, errors: [], messages: [], result });
  const show = (video: StandInVideo) => ({
    uid: video.id,
    created: createdAt(videos.indexOf(video)),
    duration: SECONDS,
    size: video.content.length,
    meta: { name: video.title, course: "7" },
    readyToStream: true,
    status: { state: "ready" },
    requireSignedURLs: !video.isPublic,
    playback: { hls: `${cdn}/${video.id}/manifest/video.m3u8` },
  });
  if (path === base) {
    const start = query.get("start") ?? "";
    const first = videos.findIndex((_, index) => createdAt(index) >= start);
    return wrap(first < 0 ? [] : videos.slice(first, first + pageSize).map(show));
  }
  const video = videoIn(path);
  if (!video) return null;
  if (path.endsWith("/downloads")) {
    const isReady = method === "GET";
    return wrap({ default: { status: isReady ? "ready" : "inprogress", percentComplete: 50, url: linkOf(video) } });
  }
  if (path.endsWith("/token")) return wrap({ token: video.id });
  if (path.endsWith("/captions"))
    return wrap(video.captions.map((language) => ({ language, label: language, generated: false, status: "ready" })));
  if (path.endsWith("/vtt")) return CAPTION;
  return wrap(show(video));
};

const bunny: Routes = ({ path, page }, context) => {
  const show = (video: StandInVideo) => ({
    videoLibraryId: 5,
    guid: video.id,
    title: video.title,
    dateUploaded: "2020-01-02T03:04:05",
    length: SECONDS,
    status: 4,
    isPublic: video.isPublic,
    hasMP4Fallback: true,
    availableResolutions: "240p,720p",
    captions: video.captions.map((srclang) => ({ srclang, label: srclang })),
    chapters: CHAPTERS.map(({ title, timecode }) => ({ title, start: timecode, end: timecode + 1 })),
  });
  if (path === "/library/5/videos") {
    const { pageSize, videos } = context;
    const items = pageOf(context, page).map(show);
    return { totalItems: videos.length, currentPage: page, itemsPerPage: pageSize, items };
  }
  const video = context.videoIn(path);
  return video ? show(video) : null;
};

const peertube: Routes = ({ path, query, body }, { cdn, linkOf, videos, pageSize, videoIn }) => {
  if (path === "/api/v1/oauth-clients/local") return { client_id: "abc", client_secret: "def" };
  if (path === "/api/v1/users/token") {
    const form = new URLSearchParams(body);
    const isRight = form.get("password") === SECRET && form.get("client_secret") === "def";
    return isRight ? { access_token: "tok", token_type: "Bearer", expires_in: 14_399, refresh_token: "r" } : undefined;
  }
  const show = (video: StandInVideo) => ({
    id: videos.indexOf(video) + 1,
    uuid: video.id,
    shortUUID: `s${videos.indexOf(video)}`,
    name: video.title,
    duration: SECONDS,
    createdAt: CREATED,
    isLive: false,
    state: { id: 1, label: "Published" },
    privacy: { id: video.isPublic ? 1 : 3 },
    category: { id: null, label: "Unknown" },
  });
  if (path === "/api/v1/users/me/videos") {
    const start = Number(query.get("start"));
    return { total: videos.length, data: videos.slice(start, start + pageSize).map(show) };
  }
  const video = videoIn(path);
  if (!video || path.endsWith("/source")) return null;
  if (path.endsWith("/captions"))
    return {
      total: video.captions.length,
      data: video.captions.map((id) => ({ language: { id, label: id }, fileUrl: `${cdn}/${video.id}/${id}.vtt` })),
    };
  if (path.endsWith("/chapters")) return { chapters: CHAPTERS };
  const file = (id: number) => ({
    resolution: { id, label: `${id}p` },
    size: id === 720 ? video.content.length : 5,
    fileDownloadUrl: id === 720 ? linkOf(video) : `${cdn}/none`,
  });
  return {
    ...show(video),
    description: "Long text",
    tags: ["a"],
    files: [],
    streamingPlaylists: [{ files: [file(240), file(720)] }],
  };
};

const vimeo: Routes = ({ path, page, query }, context) => {
  const { cdn, linkOf, videos, pageSize, videoIn } = context;
  const show = (video: StandInVideo) => ({
    uri: `/videos/${video.id}`,
    name: video.title,
    duration: SECONDS,
    created_time: "2020-01-02T03:04:05+00:00",
    status: "available",
    privacy: { view: video.isPublic ? "anybody" : "nobody" },
    tags: [{ name: "a", tag: "a" }],
    download: [
      { quality: "hd", type: "video/mp4", height: 720, link: `${cdn}/none`, size: 5 },
      { quality: "source", type: "source", height: 360, link: linkOf(video), size: video.content.length },
    ],
  });
  if (path === "/me/videos") {
    const next = page * pageSize < videos.length ? `/me/videos?page=${page + 1}&fields=${query.get("fields")}` : null;
    return { total: videos.length, page, per_page: pageSize, paging: { next }, data: pageOf(context, page).map(show) };
  }
  const video = videoIn(path);
  if (!video) return null;
  if (path.endsWith("/texttracks"))
    return { data: video.captions.map((language) => ({ language, name: language, link: `${cdn}/${language}.vtt` })) };
  if (path.endsWith("/chapters")) return { data: CHAPTERS };
  return show(video);
};

const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
/** Objects: a video, and its captions next to it. */
const objectsOf = (videos: readonly StandInVideo[]) =>
  videos.flatMap((video) => [
    { key: `lib/${video.id}.mp4`, bytes: video.content.length },
    ...video.captions.map((language) => ({ key: `lib/${video.id}.${language}.vtt`, bytes: CAPTION.length })),
  ]);
const s3: Routes = ({ path, query }, { videos, pageSize }) => {
  if (path.startsWith("/bucket/lib/")) return MEDIA;
  if (path !== "/bucket/" || query.get("list-type") !== "2") return null;
  const at = Number(query.get("continuation-token") ?? 0);
  const objects = objectsOf(videos).sort((a, b) => (a.key < b.key ? -1 : 1));
  const rest = objects.filter(({ key }) => key.startsWith(query.get("prefix") ?? ""));
  const shown = rest
    .slice(at, at + pageSize)
    .map(
      ({ key, bytes }) =>
        `<Contents><Key>${escaped(key)}</Key><LastModified>${CREATED}</LastModified><Size>${bytes}</Size></Contents>`,
    );
  const isTruncated = at + pageSize < rest.length;
  const next = isTruncated ? `<NextContinuationToken>${at + pageSize}</NextContinuationToken>` : "";
  return `<?xml version="1.0"?><ListBucketResult><IsTruncated>${isTruncated}</IsTruncated>${next}${shown.join("")}</ListBucketResult>`;
};

export const PROVIDERS: readonly StandInProvider[] = [
  {
    name: "mux",
    routes: mux,
    args: [],
    isAllowed: ({ authorization }) =>
      authorization === `Basic ${Buffer.from(`id:${SECRET}`).toString("base64")}` || authorization === undefined,
    env: () => ({ MUX_TOKEN_ID: "id", MUX_TOKEN_SECRET: SECRET }),
  },
  {
    name: "cloudflare",
    routes: cloudflare,
    args: [],
    isAllowed: ({ authorization }) => authorization === `Bearer ${SECRET}`,
    env: () => ({ CLOUDFLARE_ACCOUNT_ID: "acc", CLOUDFLARE_API_TOKEN: SECRET }),
  },
  {
    name: "peertube",
    routes: peertube,
    args: [],
    hasChapters: true,
    isAllowed: ({ authorization }) => authorization === "Bearer tok",
    env: ({ api }) => ({ PEERTUBE_URL: api, PEERTUBE_USERNAME: "root", PEERTUBE_PASSWORD: SECRET }),
  },
  {
    name: "bunny",
    routes: bunny,
    args: [],
    hasChapters: true,
    isAllowed: ({ accesskey }) => accesskey === SECRET,
    env: ({ cdn }) => ({ BUNNY_LIBRARY_ID: "5", BUNNY_API_KEY: SECRET, BUNNY_CDN_HOSTNAME: new URL(cdn).host }),
  },
  {
    name: "vimeo",
    routes: vimeo,
    args: [],
    hasChapters: true,
    isAllowed: ({ authorization }) => authorization === `bearer ${SECRET}`,
    env: () => ({ VIMEO_ACCESS_TOKEN: SECRET }),
  },
  {
    name: "s3",
    routes: s3,
    args: ["s3://bucket/lib"],
    isAllowed: () => true,
    env: () => ({ AWS_ACCESS_KEY_ID: "AK", AWS_SECRET_ACCESS_KEY: SECRET }),
  },
];
