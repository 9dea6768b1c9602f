import type { App } from "#app.ts";
import { invalid, notFound } from "#lib/base";
import { contentTypeOf } from "#model/media-types.ts";
import type { Context } from "#platform/http/route.ts";
import { segmentCacheOf } from "#platform/http/segment-cache.ts";
import { serveObject } from "#platform/http/serve-object.ts";
import { storageOf } from "#platform/http/storage.ts";
import { parseServed } from "#platform/parsing/parse-document.ts";
import type { Rebased } from "#platform/parsing/parsers.ts";
import type { AssetRow, SubtitleRow } from "#storage/db/schema.ts";
import type { ObjectStore } from "#storage/objects/store.ts";
import { nameOfFile } from "../assets/static-names.ts";
import { basePath, publicId } from "../assets/urls.ts";
import { STATIC, staticFiles } from "../static-renditions/deliver.ts";
import { isMp4Current, serveMp4 } from "../static-renditions/mp4.ts";
import { playableSubtitles } from "../subtitles/queries.ts";
import { subtitleFile, subtitleList } from "../subtitles/urls.ts";
import { addedFile, audioChanges, playedTracks } from "../tracks/audio/delivery.ts";
import type { Egress } from "./egress.ts";
import { createImageHandler } from "./images/image-handler.ts";
import { parseImageRequest } from "./images/image-request.ts";
import { sheetOf } from "./images/storyboard-sheet.ts";
import { manifestParameters } from "./manifest-parameters.ts";
import { type Top, topFile, versionedKey } from "./media-names.ts";
import { deliveryOf, isText, redirects, withPresignedUrls } from "./presigned-delivery.ts";
import { manifest, plainText, playlistOf, subtitleText, transcriptText } from "./serve-manifest.ts";
import { waitForSegment } from "./wait-for-segment.ts";

/** A file of an asset that the caller may play. `isShare`: with a token of a viewer of a share. */
export type Requested = {
  asset: AssetRow;
  file: string;
  token: string | null;
  isShare: boolean;
  root: string | null;
};

export const isSubtitle = (file: string) => file.startsWith("subtitles/");

/** Serves the files of assets to callers that may play them. */
export function mediaFiles(app: App, egress: Egress) {
  const shared: Shared = {
    app,
    cache: segmentCacheOf(app),
    usualDelivery: deliveryOf(app),
    redirect: redirects(app),
    serveImage: createImageHandler(app),
  };
  return (context: Context, requested: Requested): Promise<Response> =>
    new MediaRequest(shared, context, requested, egress).serve();
}

type Shared = {
  app: App;
  cache: ReturnType<typeof segmentCacheOf>;
  usualDelivery: ReturnType<typeof deliveryOf>;
  redirect: ReturnType<typeof redirects>;
  serveImage: ReturnType<typeof createImageHandler>;
};

class MediaRequest {
  readonly #shared: Shared;
  readonly #context: Context;
  readonly #asset: AssetRow;
  readonly #file: string;
  readonly #token: string | null;
  readonly #root: string | null;
  readonly #isSigned: boolean;
  readonly #delivery: Shared["usualDelivery"];
  readonly #scope: "private" | "public";
  readonly #objects: ObjectStore;
  readonly #parsing: { tenantId: number; signal: AbortSignal };
  readonly #common: { objects: ObjectStore; method: string; headers: Headers; onSent: (bytes: number) => void };

  constructor(shared: Shared, context: Context, requested: Requested, egress: Egress) {
    const { asset, file, token, isShare, root } = requested;
    this.#shared = shared;
    this.#context = context;
    this.#asset = asset;
    this.#file = file;
    this.#token = token;
    this.#root = root;
    this.#isSigned = isShare || asset.playbackPolicy === "signed";
    // Storage knows nothing of shares: its URLs would work after the end of one.
    this.#delivery = isShare ? "proxy" : shared.usualDelivery;
    this.#scope = this.#isSigned ? "private" : "public";
    this.#objects = storageOf(shared.app);
    this.#parsing = { tenantId: asset.tenantId, signal: context.signal };
    const onSent = (bytes: number) => egress.add(asset.tenantId, bytes);
    this.#common = { objects: this.#objects, method: context.method, headers: context.headers, onSent };
  }

  async serve(): Promise<Response> {
    const asset = this.#asset;
    const file = this.#file;
    // They belong to the asset, not to its media, and are available before it is ready.
    if (isSubtitle(file)) return this.#subtitle();
    if (asset.playbackStatus !== "ready" || asset.mediaPrefix === null) notFound("file");
    const image = parseImageRequest(asset, file, this.#context.url.searchParams);
    if (image) return this.#shared.serveImage(this.#context, asset, image, this.#common, this.#scope);
    if (file === "storyboard.json") return this.#storyboardJson();
    const top = topFile(asset, file);
    if (top?.what) return this.#manifest(top, top.what);
    if (top) return this.#fixedFile(top);
    if (file.startsWith(STATIC)) return this.#staticFile();
    const added = await addedFile(this.#app, asset.id, file);
    if (added !== null) return this.#addedFile(added ?? notFound("file"));
    return this.#versionedFile();
  }

  get #app(): App {
    return this.#shared.app;
  }

  /** The path of the asset's media below the server's, with the token of signed ones. */
  get #path(): string {
    return `/media/${publicId(this.#asset)}/${this.#isSigned ? `~${this.#token}/` : ""}`;
  }

  /** Whether storage delivers the file itself: a presigned URL is valid for one method. */
  #isRedirected(key: string): boolean {
    return this.#delivery !== "proxy" && !isText(key) && this.#context.method === "GET";
  }

  #redirect(key: string): Promise<Response> {
    const delivery = { objects: this.#objects, key, scope: this.#scope, onSent: this.#common.onSent };
    return this.#shared.redirect(this.#context, delivery);
  }

  async #subtitle(): Promise<Response> {
    const context = this.#context;
    const file = this.#file;
    const scope = this.#scope;
    const tracks = await playableSubtitles(this.#app, this.#asset.id);
    const listed = tracks.find((row) => subtitleList(row) === file);
    if (listed) return playlistOf(context, this.#asset, listed, scope);
    const spoken = tracks.find((row) => subtitleFile(row).replace(/\.vtt$/, ".txt") === file);
    if (spoken) return transcriptText(context, spoken, { scope, parsing: this.#parsing });
    const { objectKey: key } = tracks.find((row) => subtitleFile(row) === file) ?? notFound("file");
    return subtitleText(context, this.#asset, { ...this.#common, key, scope, cacheControl: `${scope}, no-cache` });
  }

  /**
   * The name of the image with all tiles, where the query of a storyboard's URL names another `format` than JPEG. Throws 422
   * `validation_failed` for an unknown one, and 404 where the storyboard has several sheets.
   */
  async #sheet(): Promise<string | null> {
    const format = this.#context.url.searchParams.get("format") ?? "jpg";
    if (!/^(jpg|png|webp)$/.test(format)) invalid("format", "must be jpg, png or webp");
    if (format === "jpg") return null;
    await sheetOf(this.#app, this.#objects, this.#asset);
    return `storyboard.${format}`;
  }

  async #storyboardJson(): Promise<Response> {
    const { key, folder } = topFile(this.#asset, "storyboard.vtt") ?? notFound("file");
    const root = `${this.#app.baseUrl()}${this.#path}`;
    const { durationSeconds } = this.#asset;
    const image = await this.#sheet();
    const sheet = image === null ? null : root + image;
    const rewrite = (bytes: Buffer) =>
      parseServed(this.#app, "storyboardJson", { bytes, root, folder, durationSeconds, sheet }, this.#parsing);
    const contentType = contentTypeOf(this.#file);
    const leftOut = image === null ? [] : [image];
    return manifest(this.#context, key, rewrite, { ...this.#common, scope: this.#scope, contentType, leftOut });
  }

  /** A manifest with the asset's subtitles and added audio, and without what the query of its URL leaves out. */
  async #manifest({ key, folder }: Top, what: Rebased): Promise<Response> {
    const asset = this.#asset;
    const query = this.#context.url.searchParams;
    const tracks = await playableSubtitles(this.#app, asset.id);
    const root = `${basePath(this.#app.baseUrl())}${this.#path}`;
    const inPath = this.#token && query.has("token") ? `~${this.#token}/` : "";
    const carried = this.#root === null ? inPath : this.#root + this.#path.slice(1);
    const { hidden, variant, isStereo, sides, isAscending } = manifestParameters(asset, query, what === "master");
    const played = await playedTracks(this.#app, asset.id);
    const audio = audioChanges(played, { carried, root });
    const image = what === "storyboard" ? await this.#sheet() : null;
    const sheet = image === null ? null : carried + image;
    const selected = { hidden, variant, isStereo, sides, isAscending, sheet };
    const below = { carried, folder, tracks: tracks.map(trackOf), audio, root, ...selected };
    const rewrite = (bytes: Buffer) => parseServed(this.#app, "rebase", { what, bytes, below }, this.#parsing);
    const leftOut = [
      ...hidden,
      ...(isStereo ? ["channels"] : []),
      ...(variant === null ? [] : [`only ${variant}`]),
      ...played.map(({ id, updatedAt, isDefault }) => `audio ${id} ${updatedAt} ${isDefault}`),
      ...(sides === null ? [] : [`sides ${sides.min} ${sides.max}`]),
      ...(isAscending ? ["ascending"] : []),
      ...(image === null ? [] : [image]),
      ...(this.#root === null ? [] : [`references from ${this.#root}`]),
    ];
    return manifest(this.#context, key, rewrite, { ...this.#common, scope: this.#scope, tracks, leftOut });
  }

  async #fixedFile({ key }: Top): Promise<Response> {
    const cacheControl = `${this.#scope}, max-age=60`;
    if (this.#file === "video.mp4") {
      const asset = { ...this.#asset, mp4Path: key };
      // As large as all segments together, so it is delivered like them.
      if (this.#isRedirected(key) && (await isMp4Current(this.#app, asset))) return this.#redirect(key);
      return serveMp4(this.#app, { ...this.#common, asset, cacheControl });
    }
    return serveObject({ ...this.#common, key, contentType: contentTypeOf(key), cacheControl });
  }

  #staticFile(): Promise<Response> {
    const name = nameOfFile(this.#file.slice(STATIC.length)) ?? notFound("file");
    const cacheControl = `${this.#scope}, max-age=60`;
    return staticFiles(this.#app).serve({ ...this.#common, asset: this.#asset, name, cacheControl });
  }

  async #addedFile(key: string): Promise<Response> {
    return this.#isRedirected(key) ? this.#redirect(key) : this.#lastingFile(key);
  }

  async #versionedFile(): Promise<Response> {
    const { key, media, path } = await versionedKey(this.#app, this.#asset, this.#file);
    const isPartial = this.#asset.encoding !== null && media.mediaPrefix === this.#asset.mediaPrefix;
    if (isPartial && this.#context.method === "GET" && !this.#shared.cache?.get(key))
      await waitForSegment(this.#app, { objects: this.#objects, asset: this.#asset, key }, this.#context.signal);
    if (this.#isRedirected(key)) return this.#redirect(key);
    // Storage answers 404 for a segment that is not encoded yet; this server has it encoded.
    if (this.#delivery !== "rewrite" || isPartial || !key.endsWith(".m3u8")) return this.#lastingFile(key);
    const rewrite = (bytes: Buffer) =>
      withPresignedUrls(this.#app, this.#objects, { media, path }, bytes.toString("utf8"));
    return manifest(this.#context, key, rewrite, { ...this.#common, scope: this.#scope, isLasting: false });
  }

  /** A file that never changes. */
  #lastingFile(key: string): Promise<Response> {
    const { cache } = this.#shared;
    const cacheControl = `${this.#scope}, max-age=31536000, immutable`;
    const lasting = { ...this.#common, key, cacheControl, ...(cache && { cache }) };
    return isText(key)
      ? plainText(this.#context, lasting)
      : serveObject({ ...lasting, contentType: contentTypeOf(key) });
  }
}

const trackOf = (row: SubtitleRow) => ({
  id: row.id,
  language: row.language,
  label: row.label,
  isDefault: row.isDefault,
  role: row.role,
  list: subtitleList(row),
  file: subtitleFile(row),
});
