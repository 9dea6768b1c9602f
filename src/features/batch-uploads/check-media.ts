import { backgroundPacer, DOCUMENT_LIMITS, HttpError } from "#lib/base";
import { hdrOfVideoRange } from "#lib/codecs";
import { type HlsVariant, resolveReference, type Span, uniqueVariants } from "#lib/manifests";
import type { TextParser, Utf8Input } from "#platform/parsing/parse-document.ts";
import type { ParserOutput } from "#platform/parsing/parsers.ts";
import { NotUtf8 } from "#platform/parsing/pool.ts";
import type { RenditionRow } from "#storage/db/schema.ts";
import type { Inventory } from "./inventory.ts";
import type { Fault } from "./manifest-schema.ts";

const MAX_PLAYLISTS = 200;

/** Collects faults, up to a limit, and all objects that are needed. */
export type Findings = { faults: Fault[]; needed: Set<string>; parse: ParseOne };

/** Parses a document of the batch. */
export type ParseOne = <N extends TextParser>(name: N, input: Utf8Input<N>) => Promise<ParserOutput<N>>;

export const TOO_COMPLEX = "document_too_complex";

/** The result of `parse`; null, with a fault, when the document exceeds a limit or is not text. */
async function parsed<T>(findings: Findings, path: string, key: string, parse: Promise<T>): Promise<T | null> {
  try {
    return await parse;
  } catch (error) {
    if (error instanceof NotUtf8) {
      addFault(findings, path, "playlist_malformed", `${quotedKey(key)} is not valid UTF-8.`);
      return null;
    }
    if (!(error instanceof HttpError && error.code === TOO_COMPLEX)) throw error;
    addFault(findings, path, TOO_COMPLEX, `${quotedKey(key)}: ${error.message}`);
    return null;
  }
}
export type Media = { durationSeconds: number; renditions: RenditionRow[] };

const MAX_FAULTS = 100;
export function addFault({ faults }: Findings, path: string, code: string, message: string): void {
  if (faults.length < MAX_FAULTS) faults.push({ path, code, message });
}

/** Whether `key` is an object of the batch; other checks are left to the caller. */
export function requireObject(
  inventory: Inventory,
  findings: Findings,
  path: string,
  key: string,
  span?: Span | undefined,
): boolean {
  const object = inventory.objects.get(key);
  if (object === undefined)
    addFault(findings, path, "object_missing", `${quotedKey(key)} is not among the objects of the batch.`);
  else if (object.announced !== null && object.announced !== object.bytes)
    addFault(
      findings,
      path,
      "object_size",
      `${quotedKey(key)} has ${object.bytes} bytes, but ${object.announced} were announced.`,
    );
  else if (span && span.end >= object.bytes)
    addFault(
      findings,
      path,
      "range_outside",
      `${quotedKey(key)} has ${object.bytes} bytes; the range ${span.start}-${span.end} is outside.`,
    );
  else {
    findings.needed.add(key);
    return true;
  }
  return false;
}

export const quotedKey = (key: string) => JSON.stringify(key.slice(0, 200));

/** The bytes of a text of at most 2 MiB; null, with a fault, when it is missing or larger. */
async function readText(
  inventory: Inventory,
  findings: Findings,
  path: string,
  key: string,
): Promise<Uint8Array | null> {
  if (!requireObject(inventory, findings, path, key)) return null;
  const bytes = inventory.objects.get(key)?.bytes ?? 0;
  if (bytes > DOCUMENT_LIMITS.documentBytes) {
    addFault(
      findings,
      path,
      "manifest_too_large",
      `${quotedKey(key)} has over ${DOCUMENT_LIMITS.documentBytes} bytes.`,
    );
    return null;
  }
  const content = await inventory.read(key);
  if (content) return content;
  addFault(findings, path, "object_missing", `${quotedKey(key)} no longer exists.`);
  return null;
}

const NO_MEDIA: Media = { durationSeconds: 0, renditions: [] };

/** Checks the playlist at `manifest` and all playlists it refers to: every reference must be in the batch. */
export async function checkHls(
  inventory: Inventory,
  findings: Findings,
  path: string,
  manifest: string,
): Promise<Media> {
  const pace = backgroundPacer();
  const seen = new Set([manifest]);
  const durations = new Map<string, number>();
  let top: ParserOutput<"hls"> | null = null;
  for (const key of seen) {
    const utf8 = await readText(inventory, findings, path, key);
    if (utf8 === null) continue;
    const parse = findings.parse("hls", { utf8, path: key, stored: inventory.objects.size });
    const playlist = await parsed(findings, path, key, parse);
    if (!playlist) {
      if (findings.faults.some(({ code }) => code === TOO_COMPLEX)) return NO_MEDIA;
      continue;
    }
    for (const { line, code, message } of playlist.faults)
      addFault(findings, path, code, `${quotedKey(key)}, line ${line}: ${message}`);
    if (key === manifest) top = playlist;
    else if (playlist.isMaster)
      addFault(
        findings,
        path,
        "playlist_malformed",
        `${quotedKey(key)} is a master playlist; expected a playlist of segments.`,
      );
    durations.set(key, playlist.durationSeconds);
    for (const { line, kind, path: target, span } of playlist.references) {
      if (findings.faults.length >= MAX_FAULTS) return NO_MEDIA;
      await pace();
      if (kind === "object") requireObject(inventory, findings, path, target, span);
      else if (!follow(target, seen, findings, { path, manifest, place: `${quotedKey(key)}, line ${line}` }))
        return NO_MEDIA;
    }
  }
  const renditions = uniqueVariants(top?.variants ?? []).flatMap((variant) => {
    const resolved = resolveReference(manifest, variant.uri);
    return "path" in resolved ? [renditionOf(variant, resolved.path)] : [];
  });
  const first = renditions[0]?.playlist_path ?? manifest;
  return { durationSeconds: durations.get(first) ?? 0, renditions };
}

type Place = { path: string; manifest: string; place: string };

/** Adds a playlist to those that are checked; false, with a fault, when there are too many. */
function follow(target: string, seen: Set<string>, findings: Findings, { path, manifest, place }: Place): boolean {
  if (target === manifest) {
    addFault(findings, path, "playlist_malformed", `${place}: a reference to the master playlist.`);
    return true;
  }
  if (seen.has(target) || seen.size < MAX_PLAYLISTS) {
    seen.add(target);
    return true;
  }
  addFault(findings, path, "playlist_unsupported", `${place}: a reference to playlist ${MAX_PLAYLISTS + 1}.`);
  return false;
}

/** `playlist_path` is still relative to the batch. */
function renditionOf({ attributes }: HlsVariant, path: string): RenditionRow {
  const [width, height] = (attributes.get("RESOLUTION") ?? "").split("x").map(Number);
  return {
    name: height ? `${height}p` : "audio",
    width: width || null,
    height: height || null,
    bandwidth: Number(attributes.get("BANDWIDTH")) || 0,
    average_bandwidth: Number(attributes.get("AVERAGE-BANDWIDTH")) || null,
    codecs: attributes.get("CODECS") ?? "",
    frame_rate: Number(attributes.get("FRAME-RATE")) || null,
    hdr: hdrOfVideoRange(attributes.get("VIDEO-RANGE")),
    playlist_path: path,
  };
}

export async function checkDash(
  inventory: Inventory,
  findings: Findings,
  path: string,
  manifest: string,
): Promise<void> {
  const utf8 = await readText(inventory, findings, path, manifest);
  if (utf8 === null) return;
  const document = await parsed(
    findings,
    path,
    manifest,
    findings.parse("mpd", { utf8, path: manifest, stored: inventory.objects.size }),
  );
  if (!document) return;
  if (document.malformed !== null)
    addFault(findings, path, "manifest_malformed", `${quotedKey(manifest)}: ${document.malformed}`);
  for (const { where, code, message } of document.faults)
    addFault(findings, path, code, `${quotedKey(manifest)}, ${where}: ${message}`);
  const pace = backgroundPacer();
  for (const reference of document.references) {
    if (findings.faults.length >= MAX_FAULTS) return;
    await pace();
    requireObject(inventory, findings, path, reference.path, reference.span);
  }
}

/** Detects JPEG, PNG, GIF or WebP by magic number; another file would be served with a wrong type. */
export async function checkThumbnail(
  inventory: Inventory,
  findings: Findings,
  path: string,
  key: string,
): Promise<void> {
  if (!requireObject(inventory, findings, path, key)) return;
  const head = (await inventory.read(key, 12)) ?? Buffer.alloc(0);
  const text = head.toString("latin1");
  const begins = ["\xff\xd8\xff", "\x89PNG\r\n", "GIF87a", "GIF89a"].some((mark) => text.startsWith(mark));
  const isImage = begins || (text.startsWith("RIFF") && text.slice(8) === "WEBP");
  if (!isImage)
    addFault(findings, path, "thumbnail_malformed", `${quotedKey(key)} is not a JPEG, PNG, GIF or WebP image.`);
}

/** Checks that a file begins as MP4 (ISO/IEC 14496-12, 4.3). */
export async function checkMp4(inventory: Inventory, findings: Findings, path: string, key: string): Promise<void> {
  if (!requireObject(inventory, findings, path, key)) return;
  const head = (await inventory.read(key, 8)) ?? Buffer.alloc(0);
  if (head.toString("latin1", 4) !== "ftyp")
    addFault(findings, path, "mp4_malformed", `${quotedKey(key)} is not an MP4 file.`);
}

/** Checks WebVTT whose cues name regions of images: `sheet.jpg#xywh=0,0,160,90` (Media Fragments URI 1.0, 4.2.2). */
export async function checkStoryboard(
  inventory: Inventory,
  findings: Findings,
  path: string,
  key: string,
): Promise<void> {
  const utf8 = await readText(inventory, findings, path, key);
  if (utf8 === null) return;
  const storyboard = await parsed(findings, path, key, findings.parse("storyboard", { utf8 }));
  if (!storyboard) return;
  const { images } = storyboard;
  if (images === null)
    return addFault(findings, path, "storyboard_malformed", `${quotedKey(key)} is not a WebVTT file.`);
  if (images.length === 0)
    return addFault(
      findings,
      path,
      "storyboard_malformed",
      `${quotedKey(key)} has no cue that references a tile (image.jpg#xywh=…).`,
    );
  for (const uri of images) {
    const resolved = resolveReference(key, uri);
    if ("code" in resolved) addFault(findings, path, resolved.code, `${quotedKey(key)}: ${resolved.message}`);
    else await checkThumbnail(inventory, findings, path, resolved.path);
  }
}
