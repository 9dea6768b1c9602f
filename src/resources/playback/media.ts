import type { AssetRow, SubtitleRow } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import type { Context } from "../../http/route.ts";
import { segmentCacheOf } from "../../http/segment-cache.ts";
import { serveObject } from "../../http/serve-object.ts";
import { storageOf } from "../../http/storage.ts";
import { HttpError, notFound } from "../../lib/errors.ts";
import { contentTypeOf } from "../../lib/media-types.ts";
import { videoCodecs } from "../../media/codecs/registry.ts";
import { parseServed } from "../../parsing/parse-document.ts";
import type { Rebased } from "../../parsing/parsers.ts";
import { STEREO_CHANNELS } from "../../protocol/audio-renditions.ts";
import { posterOf } from "../assets/poster.ts";
import { findPublicAsset } from "../assets/queries.ts";
import { replacedMediaOf } from "../assets/replaced-media.ts";
import { type Media, mediaKey } from "../assets/shared-media.ts";
import { basePath, publicId } from "../assets/urls.ts";
import { ADDED, addedFile, audioChanges, playedTracks } from "../audio-tracks/delivery.ts";
import { countPlay } from "../shares/plays.ts";
import { STATIC, staticFiles } from "../static-renditions/deliver.ts";
import { nameOfFile } from "../static-renditions/names.ts";
import { playableSubtitles } from "../subtitles/queries.ts";
import { subtitleFile, subtitleList } from "../subtitles/urls.ts";
import { requireActiveTenant } from "../tenants/active.ts";
import { audiencesOf } from "./audience.ts";
import type { Egress } from "./egress.ts";
import { createImageHandler } from "./images/image-handler.ts";
import { parseImageRequest } from "./images/image-request.ts";
import { deliveryOf, isText, redirects, withPresignedUrls } from "./presigned-delivery.ts";
import { variantReference } from "./rendition-url.ts";
import { manifest, plainText, playlistOf, subtitleText, transcriptText } from "./serve-manifest.ts";
import { type PlaybackTokens, requireAccess, splitToken } from "./token.ts";
import { waitForSegment } from "./wait-for-segment.ts";

/**
 * With `isElsewhere`, the request has another URL than `/media/…`: relative references would not lead there, so manifests
 * refer to their files by absolute paths.
 */
export type MediaHandler = (context: Context, options?: { isElsewhere?: boolean }) => Promise<Response>;

/** What a player says about its playback with a request for media. */
export type OnMedia = (context: Pick<Context, "url" | "headers" | "method">, asset: AssetRow) => void;

/**
 * `/media/<asset>/[~<token>/]<file>`. The file is one of the fixed names `master.m3u8`, `manifest.mpd`,
 * `storyboard.vtt` (or `.json`), `thumbnail.jpg` and `video.mp4`, which always resolve to the published version; an
 * image that is generated on request; `subtitles/<id>.vtt`, its text and its playlist; `static/<name>.mp4`, a static rendition; or
 * `<version>/<path>`, which never changes.
 */
export function createMediaHandler(
  app: App,
  { tokens, egress, onMedia }: { tokens: PlaybackTokens; egress: Egress; onMedia: OnMedia },
): MediaHandler {
  const cache = segmentCacheOf(app);
  const usualDelivery = deliveryOf(app);
  const redirect = redirects(app);
  const serveImage = createImageHandler(app);

  return async (context, { isElsewhere = false } = {}) => {
    const { id: ref = "", file: path = "" } = context.params as { id?: string; file?: string };
    const { token, file } = splitToken(path, context.url.searchParams);
    const asset = (await findPublicAsset(app, ref)) ?? notFound("asset");
    // Before the token check: the signing keys of a suspended tenant are disabled, and the error would be misleading.
    await requireActiveTenant(app, asset.tenantId);
    const audiences = audiencesOf(asset, file);
    const share = await requireAccess(tokens.of(context.headers), asset, token, audiences);
    if (asset.playbackStatus === "ready") onMedia(context, asset);
    if (!share) return serve(context, { asset, file, token, isShare: false, isElsewhere });
    const isImage = audiences.length > 1;
    // Previews and subtitles are no plays: a page loads them before the viewer begins.
    const isPlay = context.method === "GET" && asset.playbackStatus === "ready" && !isImage && !isSubtitle(file);
    if (isPlay) await countPlay(app, share);
    const response = await serve(context, { asset, file, token, isShare: true, isElsewhere });
    // What is immutable must still be asked for again: the share may have ended.
    response.headers.set("cache-control", "private, no-cache");
    return response;
  };

  async function serve(context: Context, { asset, file, token, isShare, isElsewhere }: Requested): Promise<Response> {
    const signed = isShare || asset.playbackPolicy === "signed";
    // Storage knows nothing of shares: its URLs would work after the end of one.
    const delivery = isShare ? "proxy" : usualDelivery;
    const objects = storageOf(app);
    const onSent = (bytes: number) => egress.add(asset.tenantId, bytes);
    const scope = signed ? "private" : "public";
    const parsing = { tenantId: asset.tenantId, signal: context.signal };
    const common = { objects, method: context.method, headers: context.headers, onSent };
    if (isSubtitle(file)) {
      // They belong to the asset, not to its media, and are available before it is ready.
      const tracks = await playableSubtitles(app, asset.id);
      const listed = tracks.find((row) => subtitleList(row) === file);
      if (listed) return playlistOf(context, asset, listed, scope);
      const spoken = tracks.find((row) => subtitleFile(row).replace(/\.vtt$/, ".txt") === file);
      if (spoken) return transcriptText(context, spoken, { scope, parsing });
      const { objectKey: key } = tracks.find((row) => subtitleFile(row) === file) ?? notFound("file");
      return subtitleText(context, asset, { ...common, key, scope, cacheControl: `${scope}, no-cache` });
    }
    if (asset.playbackStatus !== "ready" || asset.mediaPrefix === null) notFound("file");

    const imageRequest = parseImageRequest(asset, file, context.url.searchParams);
    if (imageRequest) return serveImage(context, asset, imageRequest, common, scope);
    if (file === "storyboard.json") {
      const { key, folder } = topFile(asset, "storyboard.vtt") ?? notFound("file");
      const root = `${app.baseUrl()}/media/${publicId(asset)}/${signed ? `~${token}/` : ""}`;
      const { durationSeconds } = asset;
      const rewrite = (bytes: Buffer) =>
        parseServed(app, "storyboardJson", { bytes, root, folder, durationSeconds }, parsing);
      return manifest(context, key, rewrite, { ...common, scope, contentType: contentTypeOf(file) });
    }
    const top = topFile(asset, file);
    if (top) {
      const { what, folder } = top;
      if (what) {
        const tracks = await playableSubtitles(app, asset.id);
        const root = `${basePath(app.baseUrl())}/media/${publicId(asset)}/${signed ? `~${token}/` : ""}`;
        const inPath = token && context.url.searchParams.has("token") ? `~${token}/` : "";
        const carried = isElsewhere ? root : inPath;
        const hidden = hiddenEntries(context.url.searchParams.get("codecs"));
        const isStereo = isStereoOnly(context.url.searchParams.get("channels"));
        const chosen = context.url.searchParams.get("rendition");
        const variant = what === "master" && chosen !== null ? variantOf(asset, chosen) : null;
        requireVariant(asset, hidden, variant === null ? null : chosen);
        const sounds = await playedTracks(app, asset.id);
        const audio = audioChanges(sounds, { carried, root });
        const below = { carried, folder, tracks: tracks.map(trackOf), audio, root, hidden, variant, isStereo };
        const rewrite = (bytes: Buffer) => parseServed(app, "rebase", { what, bytes, below }, parsing);
        const leftOut = [
          ...hidden,
          ...(isStereo ? ["channels"] : []),
          ...(variant === null ? [] : [`only ${variant}`]),
          ...sounds.map(({ id, updatedAt, isDefault }) => `audio ${id} ${updatedAt} ${isDefault}`),
          ...(isElsewhere ? ["relative references"] : []),
        ];
        return manifest(context, top.key, rewrite, { ...common, scope, tracks, leftOut });
      }
      // As large as all segments together, so it is delivered like them.
      if (file === "video.mp4" && delivery !== "proxy" && context.method === "GET")
        return redirect(context, { objects, key: top.key, scope, onSent });
      return serveObject({
        ...common,
        key: top.key,
        contentType: contentTypeOf(top.key),
        cacheControl: `${scope}, max-age=60`,
      });
    }
    if (file.startsWith(STATIC)) {
      const name = nameOfFile(file.slice(STATIC.length)) ?? notFound("file");
      return staticFiles(app).serve({ ...common, asset, name, cacheControl: `${scope}, max-age=60` });
    }
    const added = addedFile(file.startsWith(ADDED) ? await playedTracks(app, asset.id) : [], file);
    if (added !== null) {
      const key = added ?? notFound("file");
      if (delivery !== "proxy" && !isText(key) && context.method === "GET")
        return redirect(context, { objects, key, scope, onSent });
      const cacheControl = `${scope}, max-age=31536000, immutable`;
      const lasting = { ...common, key, cacheControl, ...(cache && { cache }) };
      return isText(key) ? plainText(context, lasting) : serveObject({ ...lasting, contentType: contentTypeOf(key) });
    }
    const { key, media } = await versionedKey(app, asset, file);
    const isPartial = asset.encoding !== null && media.mediaPrefix === asset.mediaPrefix;
    if (isPartial && context.method === "GET" && !cache?.get(key))
      await waitForSegment(app, { objects, asset, key }, context.signal);
    // A presigned URL is valid for one method.
    if (delivery !== "proxy" && !isText(key) && context.method === "GET")
      return redirect(context, { objects, key, scope, onSent });
    // Storage answers 404 for a segment that is not encoded yet; this server has it encoded.
    if (delivery === "rewrite" && !isPartial && key.endsWith(".m3u8")) {
      const path = key.slice(media.mediaPrefix.length);
      const rewrite = (bytes: Buffer) => withPresignedUrls(app, objects, { media, path }, bytes.toString("utf8"));
      return manifest(context, key, rewrite, { ...common, scope, isLasting: false });
    }
    const lasting = { ...common, key, cacheControl: `${scope}, max-age=31536000, immutable`, ...(cache && { cache }) };
    return isText(key) ? plainText(context, lasting) : serveObject({ ...lasting, contentType: contentTypeOf(key) });
  }
}

/** `isShare`: with a token of a viewer of a share. */
type Requested = { asset: AssetRow; file: string; token: string | null; isShare: boolean; isElsewhere: boolean };

const isSubtitle = (file: string) => file.startsWith("subtitles/");

/**
 * The sample entries of the video codecs that are not in a list of names, separated by commas; none without a list. Throws
 * 422 `validation_failed` for an unknown codec.
 */
function hiddenEntries(list: string | null): string[] {
  if (list === null) return [];
  const wanted = list.split(",");
  const known: readonly string[] = Object.keys(videoCodecs);
  if (!wanted.every((name) => known.includes(name)))
    throw new HttpError(422, "validation_failed", `codecs must be a list of ${known.join(", ")}.`);
  return Object.values(videoCodecs).flatMap(({ name, sampleEntries }) => (wanted.includes(name) ? [] : sampleEntries));
}

/** Throws 422 `validation_failed` where no rendition is left: no player plays such a manifest, and none says why. */
function requireVariant({ renditions }: AssetRow, hidden: readonly string[], chosen: string | null): void {
  const entryOf = (codecs: string) => codecs.split(".", 1)[0] ?? "";
  const listed = renditions.filter(({ name }) => chosen === null || name === chosen);
  const isHidden = ({ codecs }: (typeof renditions)[number]) => codecs !== null && hidden.includes(entryOf(codecs));
  if (listed.length === 0 || !listed.every(isHidden)) return;
  const entries = listed.map(({ codecs }) => entryOf(codecs ?? ""));
  const names = Object.values(videoCodecs).filter(({ sampleEntries }) =>
    sampleEntries.some((entry) => entries.includes(entry)),
  );
  const [what, own] = [chosen === null ? "the asset" : `rendition ${chosen}`, names.map(({ name }) => name).join(", ")];
  throw new HttpError(422, "validation_failed", `codecs must contain a codec of ${what}: ${own}.`);
}

/** The reference of a rendition in the master playlist. Throws 422 `validation_failed` for a name that the asset does not have. */
function variantOf(asset: AssetRow, name: string): string {
  const found = asset.renditions.find((one) => one.name === name);
  const reference = found && variantReference(asset, found);
  if (!reference)
    throw new HttpError(422, "validation_failed", "rendition must be the name of a rendition of the asset.");
  return reference;
}

/** Whether audio of more than two channels is to be left out. Throws 422 `validation_failed` for another number. */
function isStereoOnly(channels: string | null): boolean {
  if (channels !== null && channels !== String(STEREO_CHANNELS))
    throw new HttpError(422, "validation_failed", `channels must be ${STEREO_CHANNELS}.`);
  return channels !== null;
}

type Top = { key: string; folder: string; what?: Rebased };

const trackOf = (row: SubtitleRow) => ({
  ...{ id: row.id, language: row.language, label: row.label, isDefault: row.isDefault },
  ...{ list: subtitleList(row), file: subtitleFile(row) },
});

/** Resolves a fixed name. `folder` is the last part of the published prefix, followed by the path below it. */
function topFile(asset: AssetRow, file: string): Top | null {
  const known = {
    "master.m3u8": [asset.manifestPath, "master"],
    "manifest.mpd": [asset.dashManifestPath, "mpd"],
    "storyboard.vtt": [asset.storyboardPath, "storyboard"],
    "thumbnail.jpg": [posterOf(asset), undefined],
    "video.mp4": [asset.mp4Path, undefined],
  } as const;
  if (!Object.hasOwn(known, file)) return null;
  const [key, what] = known[file as keyof typeof known];
  if (!key) return notFound("file");
  const prefix = asset.mediaPrefix as string;
  return {
    key,
    // It becomes part of a URL; clients choose the names of their own directories.
    folder: `${versionOf(prefix)}/${key
      .slice(prefix.length, key.lastIndexOf("/") + 1)
      .split("/")
      .map(encodeURIComponent)
      .join("/")}`,
    ...(what && { what }),
  };
}

const versionOf = (prefix: string) => prefix.split("/").at(-2) as string;

/** A file of the published media, or of those that they have replaced less than an hour ago. */
async function versionedKey(
  app: App,
  asset: AssetRow,
  file: string,
): Promise<{ key: string; media: Media & { mediaPrefix: string } }> {
  const prefix = asset.mediaPrefix as string;
  const [version, ...rest] = file.split("/");
  if (rest.length === 0 || rest.some((part) => part === "" || part === "." || part === "..")) notFound("file");
  const path = rest.join("/");
  if (version === versionOf(prefix)) return { key: mediaKey(asset, path), media: { ...asset, mediaPrefix: prefix } };
  const media =
    (await replacedMediaOf(app, asset.id)).find((one) => versionOf(one.mediaPrefix) === version) ?? notFound("file");
  return { key: mediaKey(media, path), media };
}
