import type { App } from "#app.ts";
import { DOCUMENT_LIMITS, HttpError } from "#lib/base";
import { resolveReference } from "#lib/manifests";
import { ownPath } from "#model/object-keys.ts";
import { parseUtf8, type TextParser, type Utf8Input } from "#platform/parsing/parse-document.ts";
import type { ParserOutput } from "#platform/parsing/parsers.ts";
import { NotUtf8 } from "#platform/parsing/pool.ts";
import { InvalidKey } from "#storage/objects/keys.ts";
import { readSmallObject } from "#storage/objects/small-objects.ts";
import { type ObjectStore, ObjectTooLarge } from "#storage/objects/store.ts";
import { incomplete } from "./captions.ts";

/** A master playlist has at most 100 renditions of video and 100 of audio. */
const MAX_PLAYLISTS = 200;

type Place = { objects: ObjectStore; prefix: string; tenantId: number };
type Paths = {
  manifestPath: string;
  dashManifestPath: string | null;
  storyboardPath: string | null;
};
type Fault = { code: string; message: string };

/**
 * Checks that what a worker wrote for players refers only to files below the attempt's prefix: its program may be hostile,
 * and a player would load anything else from another site, or from another asset. Other faults of a document are the
 * player's to judge, as far as nothing is hidden behind them. Throws 422 `invalid_transcoding_result`.
 */
export async function checkReferences(app: App, place: Place, paths: Paths): Promise<void> {
  await checkHls(app, place, paths.manifestPath);
  if (paths.dashManifestPath !== null) await checkDash(app, place, paths.dashManifestPath);
  if (paths.storyboardPath !== null) await checkStoryboard(app, place, paths.storyboardPath);
}

async function checkHls(app: App, place: Place, manifest: string): Promise<void> {
  const seen = new Set([ownPath(place.prefix, manifest)]);
  for (const path of seen) {
    const playlist = await parsed(app, "hls", place, { field: "manifest_path", path }, { path, stored: MAX_PLAYLISTS });
    if (playlist === null) continue;
    const { faults, references } = playlist;
    // A player may accept a first line that the parser does not, and read on.
    const header = faults.find(({ line, code }) => line === 1 && code === "playlist_malformed");
    requireInside("manifest_path", path, header ? [{ ...header, code: "playlist_unsupported" }] : faults);
    for (const { kind, path: target } of references) if (kind === "playlist") seen.add(target);
    if (seen.size > MAX_PLAYLISTS)
      incomplete("manifest_path", `${quoted(path)} references more than ${MAX_PLAYLISTS} playlists`);
  }
}

async function checkDash(app: App, place: Place, manifest: string): Promise<void> {
  const path = ownPath(place.prefix, manifest);
  const field = "dash_manifest_path";
  const read = await parsed(app, "mpd", place, { field, path }, { path, stored: 0 });
  if (read === null) return;
  if (read.malformed !== null) incomplete(field, `${quoted(path)} is not XML: ${read.malformed}`);
  requireInside(field, path, read.faults);
}

async function checkStoryboard(app: App, place: Place, storyboard: string): Promise<void> {
  const path = ownPath(place.prefix, storyboard);
  const field = "storyboard_path";
  const read = await parsed(app, "storyboard", place, { field, path }, {});
  if (read === null) return;
  if (read.images === null) return incomplete(field, `${quoted(path)} is not a WebVTT file`);
  for (const uri of read.images) {
    const resolved = resolveReference(path, uri);
    if ("code" in resolved) requireInside(field, path, [resolved]);
  }
}

const quoted = (path: string) => JSON.stringify(path.slice(0, 200));

/** Throws 422 for a reference that leads away, and for so many faults that the rest was not read. */
function requireInside(field: string, path: string, faults: readonly Fault[]): void {
  const found = faults.find(({ code }) => code.startsWith("reference_") || code.endsWith("_unsupported"));
  const fault = found ?? (faults.length >= DOCUMENT_LIMITS.faults ? faults[0] : undefined);
  if (fault) incomplete(field, `${quoted(path)}: ${fault.message}`);
}

/** Null: it does not exist. Players report that. */
async function parsed<N extends TextParser>(
  app: App,
  name: N,
  { objects, prefix, tenantId }: Place,
  { field, path }: { field: string; path: string },
  input: Omit<Utf8Input<N>, "utf8">,
): Promise<ParserOutput<N> | null> {
  try {
    const utf8 = await readSmallObject(objects, prefix + path, { maxBytes: DOCUMENT_LIMITS.servedBytes });
    if (utf8 === null) return null;
    return await parseUtf8(app, name, { ...input, utf8 } as unknown as Utf8Input<N>, { tenantId });
  } catch (error) {
    if (error instanceof InvalidKey) return null;
    if (error instanceof NotUtf8) return incomplete(field, `${quoted(path)} is not valid UTF-8`);
    if (error instanceof ObjectTooLarge)
      return incomplete(field, `${quoted(path)} has over ${DOCUMENT_LIMITS.servedBytes} bytes`);
    if (error instanceof HttpError && error.code === "document_too_complex")
      return incomplete(field, `${quoted(path)}: ${error.message}`);
    throw error;
  }
}
