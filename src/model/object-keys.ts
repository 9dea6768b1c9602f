import { randomBytes } from "node:crypto";
import { randomName } from "#lib/base";

/**
 * The keys of all objects that vodbox creates, by kind:
 *
 * | Kind        | Key                                                     | Content                                 |
 * | ----------- | ------------------------------------------------------- | --------------------------------------- |
 * | `source`    | `tenants/<id>/sources/<name>[.<extension>]`             | an uploaded file                        |
 * | `attempt`   | `tenants/<id>/assets/<id>/<job id>-<attempt id>/<path>` | the output of one attempt of a job      |
 * | `subtitle`  | `tenants/<id>/assets/<id>/subtitles/<name>.vtt`         | the text of a subtitle                  |
 * | `poster`    | `tenants/<id>/assets/<id>/poster/<name>.jpg`            | an image that a client chose            |
 * | `image`     | `tenants/<id>/assets/<id>/pictures/<version>/<file>`    | an on-demand image                      |
 * | `delivered` | `tenants/<id>/delivered/<name>/<path>`                  | an asset of a batch, or a clip          |
 * | `batch`     | `tenants/<id>/ingest/<name>/<path>`                     | an upload of a batch, before its commit |
 * | `trash`     | `trash/<YYYY-MM-DD>/<key>`                              | an object that was removed on that day  |
 * | `probe`     | `vodbox-check[-<12 hex digits>]`                        | written and deleted by a storage check  |
 *
 * An `<id>` is a decimal number, a `<name>` has 24 characters of [A-Za-z0-9], a `<version>` has 16 hex digits. A `<path>`
 * contains no control characters, which no store accepts. Databases and buckets contain these keys, so their forms must
 * never change.
 *
 * A client may register a source or media with any other key below its tenant's prefix. Such a key has no kind;
 * `ownerOf` finds its tenant.
 */
export type ParsedKey =
  | { kind: "source"; tenantId: number; name: string; extension?: string }
  | { kind: "attempt"; tenantId: number; assetId: number; jobId: number; attemptId: number; path: string }
  | { kind: "subtitle" | "poster"; tenantId: number; assetId: number; name: string }
  | { kind: "image"; tenantId: number; assetId: number; version: string; file: string }
  | { kind: "delivered" | "batch"; tenantId: number; folder: string; path: string }
  | { kind: "trash"; day: string; key: string }
  | { kind: "probe" };

/** Prefix of all objects of tenants. */
export const TENANTS = "tenants/";
/** Not under `tenants/`: code that lists, serves, backs up or migrates tenants' objects skips it. */
export const TRASH = "trash/";
/** The probe of a store that has only one user; see `newProbeKey` for shared ones. */
export const PROBE = "vodbox-check";

type AssetIds = { tenantId: number; id: number };
type JobIds = { tenantId: number; assetId: number; id: number };
type BatchFolder = { tenantId: number; folder: string };

/** Prefixes end in a slash. */
export const tenantPrefix = (tenantId: number) => `${TENANTS}${tenantId}/`;
export const assetPrefix = ({ tenantId, id }: AssetIds) => `${tenantPrefix(tenantId)}assets/${id}/`;
/**
 * An attempt writes only under its own prefix: a worker that has lost its lease can write there, but the result is
 * never published.
 */
export const attemptPrefix = ({ tenantId, assetId, id }: JobIds, attemptId: number) =>
  `${assetPrefix({ tenantId, id: assetId })}${id}-${attemptId}/`;
/** On-demand images of all versions of an asset. */
export const imagesPrefix = (asset: AssetIds) => `${assetPrefix(asset)}pictures/`;
/** `version` has 16 lowercase hex digits. */
export const imageVersionPrefix = (asset: AssetIds, version: string) => `${imagesPrefix(asset)}${version}/`;
/** The prefix of all batches of a tenant. */
export const batchesPrefix = (tenantId: number) => `${tenantPrefix(tenantId)}ingest/`;
export const batchPrefix = ({ tenantId, folder }: BatchFolder) => `${batchesPrefix(tenantId)}${folder}/`;
/** `batchPrefix` as an SQL expression of two columns. */
export const batchPrefixSql = (tenantId: string, folder: string) =>
  `'${TENANTS}' || ${tenantId} || '/ingest/' || ${folder} || '/'`;
/** `day` is YYYY-MM-DD. */
export const trashPrefix = (day: string) => `${TRASH}${day}/`;

/** A random `<name>`: the folder of a batch, for example. */
export const newKeyName = () => randomName(24);
/** Only a plain extension of `filename` becomes part of the key. */
export const newSourceKey = (tenantId: number, filename: string) =>
  `${tenantPrefix(tenantId)}sources/${newKeyName()}${extensionOf(filename)}`;
/** A prefix for the media of one asset of a batch, or of a clip: chosen before the asset exists, so it cannot contain its id. */
export const newDeliveredPrefix = (tenantId: number) => `${tenantPrefix(tenantId)}delivered/${newKeyName()}/`;
/** Below the prefix of an asset, or the one of its delivered media. */
export const newSubtitleKey = (prefix: string) => `${prefix}subtitles/${newKeyName()}.vtt`;
export const newPosterKey = (asset: AssetIds) => `${assetPrefix(asset)}poster/${newKeyName()}.jpg`;
/** Several servers may check the same bucket at once. */
export const newProbeKey = () => `${PROBE}-${randomBytes(6).toString("hex")}`;

/*
 * A manifest and all that it refers to are below one prefix, which rows and messages contain once: the rest of a key is a
 * path. These functions are the only code that takes keys and such paths apart.
 */

/** The path of `key` below `prefix`; null when it is elsewhere. */
export const pathBelow = (prefix: string, key: string): string | null =>
  key.startsWith(prefix) ? key.slice(prefix.length) : null;

/** The same for a key that is known to be below `prefix`. Throws a RangeError for another one. */
export function ownPath(prefix: string, key: string): string {
  const path = pathBelow(prefix, key);
  if (path === null) throw new RangeError(`${key} is not below ${prefix}.`);
  return path;
}

/** Whether `key` is below `prefix`. */
export const isBelow = (prefix: string, key: string): boolean => pathBelow(prefix, key) !== null;

/** The key at the same path below another prefix; a key that is elsewhere stays as it is. */
export function movedKey(key: string, from: string, to: string): string {
  const path = pathBelow(from, key);
  return path === null ? key : to + path;
}

/** Whether `key` is a prefix: rows of objects that are to be deleted have both. */
export const isPrefix = (key: string): boolean => key.endsWith("/");

/** A prefix as the path of a directory, without its slash. */
export const directoryOf = (prefix: string): string => prefix.slice(0, -1);

/** The first key in the order of keys that is not below `prefix` any more: a slash is followed by 0. */
export const endOfPrefix = (prefix: string): string => `${directoryOf(prefix)}0`;

/** Every prefix that `key` is below, the shortest first; itself when it is one. */
export function* prefixesOf(key: string): Generator<string, void> {
  for (let end = key.indexOf("/"); end >= 0; end = key.indexOf("/", end + 1)) yield key.slice(0, end + 1);
}

/** The first folder of a path, and the path below it; null for a path without a folder. */
export function splitFirst(path: string): { folder: string; path: string } | null {
  const slash = path.indexOf("/");
  return slash === -1 ? null : { folder: path.slice(0, slash), path: path.slice(slash + 1) };
}

/** The rendition and the number of a segment, from 1, of the path that an encoder gives it; null for any other path. */
export function segmentAt(path: string): { rendition: string; number: number } | null {
  const [, rendition, number] = /^([A-Za-z0-9_][A-Za-z0-9._-]*)\/(\d{5,8})\.m4s$/.exec(path) ?? [];
  return rendition === undefined ? null : { rendition, number: Number(number) };
}

/** The folder of a key or a path, with its slash; empty for a path without a folder. */
export const folderOf = (path: string): string => path.slice(0, path.lastIndexOf("/") + 1);

/** The last segment of a key or a path. */
export const fileNameOf = (path: string): string => path.slice(path.lastIndexOf("/") + 1);

/** The name of the last folder of a key, a path or a prefix, without slashes; empty when there is none. */
export const lastFolderOf = (path: string): string => fileNameOf(folderOf(path).slice(0, -1));

/** Whether a path has no empty segment, and none that a browser or a file system would resolve: `.` or `..`. */
export const isPlainPath = (path: string): boolean =>
  pathSegments(path).every((segment) => segment !== "" && segment !== "." && segment !== "..");

/** The segments of a key or a path, between its slashes. */
export const pathSegments = (path: string): string[] => path.split("/");

/** A key or a path as a part of a URL. */
export const urlPathOf = (path: string): string => pathSegments(path).map(encodeURIComponent).join("/");

/** The key or path that `urlPathOf` made a part of a URL. Throws URIError for an invalid escape. */
export const pathOfUrl = (urlPath: string): string => pathSegments(urlPath).map(decodeURIComponent).join("/");

/** Whether a key has a character that no store accepts. */
export const hasControlCharacter = (key: string): boolean => /\p{Cc}/u.test(key);

/** A plain extension in lower case with its dot; empty when there is none. */
export const extensionOf = (filename: string) => /\.[A-Za-z0-9]{1,8}$/.exec(filename)?.[0].toLowerCase() ?? "";

/** A tenant's prefix, and the area of vodbox below it, if any. */
const OWNED = /^tenants\/(?<tenantId>\d{1,15})\/(?:(?<area>sources|assets|delivered|ingest)\/)?/;
const DELIVERED_PREFIX = /^tenants\/(?<tenantId>\d{1,15})\/delivered\/[A-Za-z0-9]{24}\/$/;
/** Groups named `…Id` are numbers: their 15 digits are exact. */
const FORMS: Record<ParsedKey["kind"], RegExp> = {
  source: /^tenants\/(?<tenantId>\d{1,15})\/sources\/(?<name>[A-Za-z0-9]{24})(?<extension>\.[a-z0-9]{1,8})?$/,
  attempt:
    /^tenants\/(?<tenantId>\d{1,15})\/assets\/(?<assetId>\d{1,15})\/(?<jobId>\d{1,15})-(?<attemptId>\d{1,15})\/(?<path>\P{Cc}+)$/u,
  subtitle: /^tenants\/(?<tenantId>\d{1,15})\/assets\/(?<assetId>\d{1,15})\/subtitles\/(?<name>[A-Za-z0-9]{24})\.vtt$/,
  poster: /^tenants\/(?<tenantId>\d{1,15})\/assets\/(?<assetId>\d{1,15})\/poster\/(?<name>[A-Za-z0-9]{24})\.jpg$/,
  image:
    /^tenants\/(?<tenantId>\d{1,15})\/assets\/(?<assetId>\d{1,15})\/pictures\/(?<version>[0-9a-f]{16})\/(?<file>[^/\p{Cc}]+)$/u,
  delivered: /^tenants\/(?<tenantId>\d{1,15})\/delivered\/(?<folder>[A-Za-z0-9]{24})\/(?<path>\P{Cc}+)$/u,
  batch: /^tenants\/(?<tenantId>\d{1,15})\/ingest\/(?<folder>[A-Za-z0-9]{24})\/(?<path>\P{Cc}+)$/u,
  trash: /^trash\/(?<day>\d{4}-\d{2}-\d{2})\/(?<key>.*)$/s,
  probe: /^vodbox-check(?:-[0-9a-f]{12})?$/,
};

/** Null for a key that vodbox does not create, and for the prefix of keys. Takes time linear in the length of `key`. */
export function parseKey(key: string): ParsedKey | null {
  for (const [kind, form] of Object.entries(FORMS)) {
    const fields = fieldsOf(form, key);
    if (fields) return { kind, ...fields } as ParsedKey;
  }
  return null;
}

const ATTEMPT_PREFIX =
  /^tenants\/(?<tenantId>\d{1,15})\/assets\/(?<assetId>\d{1,15})\/(?<jobId>\d{1,15})-(?<attemptId>\d{1,15})\/$/;

type Owner = { tenantId: number; area?: "sources" | "assets" | "delivered" | "ingest" };

/** The tenant of any key below a tenant's prefix, also of one that a client chose, and the area that the key is in. */
export const ownerOf = (key: string): Owner | null => fieldsOf(OWNED, key) as Owner | null;

/** Whether `prefix` is one of `newDeliveredPrefix` for this tenant. */
export const isDeliveredPrefix = (prefix: string, tenantId: number): boolean =>
  fieldsOf(DELIVERED_PREFIX, prefix)?.tenantId === tenantId;

/** Whether `prefix` is one under which this tenant's media are stored and deleted by the program: not a client's own. */
export const isMediaPrefix = (prefix: string, tenantId: number): boolean =>
  isDeliveredPrefix(prefix, tenantId) || fieldsOf(ATTEMPT_PREFIX, prefix)?.tenantId === tenantId;

/** Null also for an id with a leading zero, which no builder writes: a key has only one owner. */
function fieldsOf(form: RegExp, key: string): Record<string, string | number> | null {
  const match = form.exec(key);
  if (!match) return null;
  const fields: Record<string, string | number> = {};
  for (const [name, text] of Object.entries(match.groups ?? {})) {
    if (text === undefined) continue;
    fields[name] = name.endsWith("Id") ? Number(text) : text;
    if (String(fields[name]) !== text) return null;
  }
  return fields;
}
