import type { RenditionRow } from "../../../storage/db/schema.ts";
import { DOCUMENT_LIMITS } from "../../lib/document-limits.ts";
import { HttpError } from "../../lib/errors.ts";
import type { HlsVariant, Span } from "../../lib/hls-read.ts";
import { backgroundPacer } from "../../lib/pace.ts";
import { resolveReference } from "../../lib/relative-reference.ts";
import type { TextParser, Utf8Input } from "../../parsing/parse-document.ts";
import type { ParserOutput } from "../../parsing/parsers.ts";
import { NotUtf8 } from "../../parsing/pool.ts";
import type { Inventory } from "./inventory.ts";
import type { Fault } from "./manifest-schema.ts";

const MAX_PLAYLISTS = 200;

/** Collects what is wrong, up to a bound, and all objects that are needed. */
export type Findings = { faults: Fault[]; needed: Set<string>; parse: ParseOne };

/** Parses a document of the batch. */
export type ParseOne = <N extends TextParser>(name: N, input: Utf8Input<N>) => Promise<ParserOutput<N>>;

export const TOO_COMPLEX = "document_too_complex";

/** The result of `parse`; null, with a fault, where the document exceeds a limit or is no text. */
async function parsed<T>(findings: Findings, path: string, key: string, parse: Promise<T>): Promise<T | null> {
  try {
    return await parse;
  } catch (error) {
    if (error instanceof NotUtf8) {
      addFault(findings, path, "playlist_malformed", `${shown(key)} is not in UTF-8.`);
      return null;
    }
    if (!(error instanceof HttpError && error.code === TOO_COMPLEX)) throw error;
    addFault(findings, path, TOO_COMPLEX, `${shown(key)}: ${error.message}`);
    return null;
  }
}
export type Media = { durationSeconds: number; renditions: RenditionRow[] };

const MAX_FAULTS = 100;
export function addFault({ faults }: Findings, path: string, code: string, message: string): void {
  if (faults.length < MAX_FAULTS) faults.push({ path, code, message });
}

/** Whether `key` is an object of the batch; what else of it has to be right is the caller's to see. */
export function requireObject(
  held: Inventory,
  findings: Findings,
  path: string,
  key: string,
  span?: Span | undefined,
): boolean {
  const object = held.objects.get(key);
  if (object === undefined)
    addFault(findings, path, "object_missing", `${shown(key)} is not among the objects of the batch.`);
  else if (object.announced !== null && object.announced !== object.bytes)
    addFault(
      findings,
      path,
      "object_size",
      `${shown(key)} has ${object.bytes} bytes, and not the ${object.announced} announced.`,
    );
  else if (span && span.end >= object.bytes)
    addFault(
      findings,
      path,
      "range_outside",
      `${shown(key)} has ${object.bytes} bytes, and no bytes ${span.start}-${span.end}.`,
    );
  else {
    findings.needed.add(key);
    return true;
  }
  return false;
}

export const shown = (key: string) => JSON.stringify(key.slice(0, 200));

/** The bytes of a text of at most 2 MiB; null, with a fault, where there is none. */
async function readText(held: Inventory, findings: Findings, path: string, key: string): Promise<Uint8Array | null> {
  if (!requireObject(held, findings, path, key)) return null;
  const bytes = held.objects.get(key)?.bytes ?? 0;
  if (bytes > DOCUMENT_LIMITS.documentBytes) {
    addFault(findings, path, "manifest_too_large", `${shown(key)} has over ${DOCUMENT_LIMITS.documentBytes} bytes.`);
    return null;
  }
  const content = await held.read(key);
  if (content) return content;
  addFault(findings, path, "object_missing", `${shown(key)} is gone.`);
  return null;
}

const NO_MEDIA: Media = { durationSeconds: 0, renditions: [] };

/** The playlist at `manifest` with every one that it leads to: all they refer to is in the batch. */
export async function checkHls(held: Inventory, findings: Findings, path: string, manifest: string): Promise<Media> {
  const pace = backgroundPacer();
  const seen = new Set([manifest]);
  const durations = new Map<string, number>();
  let top: ParserOutput<"hls"> | null = null;
  for (const key of seen) {
    const utf8 = await readText(held, findings, path, key);
    if (utf8 === null) continue;
    const playlist = await parsed(
      findings,
      path,
      key,
      findings.parse("hls", { utf8, path: key, stored: held.objects.size }),
    );
    if (!playlist && findings.faults.some(({ code }) => code === TOO_COMPLEX)) return NO_MEDIA;
    if (!playlist) continue;
    for (const { line, code, message } of playlist.faults)
      addFault(findings, path, code, `${shown(key)}, line ${line}: ${message}`);
    if (key === manifest) top = playlist;
    else if (playlist.isMaster)
      addFault(findings, path, "playlist_malformed", `${shown(key)} names variants where segments are due.`);
    durations.set(key, playlist.durationSeconds);
    for (const { line, kind, path: target, span } of playlist.references) {
      if (findings.faults.length >= MAX_FAULTS) return NO_MEDIA;
      await pace();
      if (kind === "object") requireObject(held, findings, path, target, span);
      else if (!seen.has(target) && seen.size >= MAX_PLAYLISTS) {
        addFault(
          findings,
          path,
          "playlist_unsupported",
          `${shown(key)}, line ${line}: it names over ${MAX_PLAYLISTS} playlists.`,
        );
        return NO_MEDIA;
      } else seen.add(target);
    }
  }
  const renditions = (top?.variants ?? []).flatMap((variant) => {
    const resolved = resolveReference(manifest, variant.uri);
    return "path" in resolved ? [renditionOf(variant, resolved.path)] : [];
  });
  const first = renditions[0]?.playlist_path ?? manifest;
  return { durationSeconds: durations.get(first) ?? 0, renditions };
}

/** `playlist_path` is still below the batch. */
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
    playlist_path: path,
  };
}

export async function checkDash(held: Inventory, findings: Findings, path: string, manifest: string): Promise<void> {
  const utf8 = await readText(held, findings, path, manifest);
  if (utf8 === null) return;
  const found = await parsed(
    findings,
    path,
    manifest,
    findings.parse("mpd", { utf8, path: manifest, stored: held.objects.size }),
  );
  if (!found) return;
  if (found.malformed !== null)
    addFault(findings, path, "manifest_malformed", `${shown(manifest)}: ${found.malformed}`);
  for (const { where, code, message } of found.faults)
    addFault(findings, path, code, `${shown(manifest)}, ${where}: ${message}`);
  const pace = backgroundPacer();
  for (const reference of found.references) {
    if (findings.faults.length >= MAX_FAULTS) return;
    await pace();
    requireObject(held, findings, path, reference.path, reference.span);
  }
}

/** JPEG, PNG, GIF or WebP by their first bytes; what is none would be served as one. */
export async function checkPicture(held: Inventory, findings: Findings, path: string, key: string): Promise<void> {
  if (!requireObject(held, findings, path, key)) return;
  const head = (await held.read(key, 12)) ?? Buffer.alloc(0);
  const text = head.toString("latin1");
  const begins = ["\xff\xd8\xff", "\x89PNG\r\n", "GIF87a", "GIF89a"].some((mark) => text.startsWith(mark));
  const isPicture = begins || (text.startsWith("RIFF") && text.slice(8) === "WEBP");
  if (!isPicture) addFault(findings, path, "thumbnail_malformed", `${shown(key)} is no JPEG, PNG, GIF or WebP.`);
}

/** WebVTT whose cues name parts of pictures: `sheet.jpg#xywh=0,0,160,90` (Media Fragments URI 1.0, 4.2.2). */
export async function checkStoryboard(held: Inventory, findings: Findings, path: string, key: string): Promise<void> {
  const utf8 = await readText(held, findings, path, key);
  if (utf8 === null) return;
  const found = await parsed(findings, path, key, findings.parse("storyboard", { utf8 }));
  if (!found) return;
  const { pictures } = found;
  if (pictures === null) return addFault(findings, path, "storyboard_malformed", `${shown(key)} is no WebVTT.`);
  if (pictures.length === 0)
    return addFault(findings, path, "storyboard_malformed", `${shown(key)} names no part of a picture.`);
  for (const uri of pictures) {
    const resolved = resolveReference(key, uri);
    if ("code" in resolved) addFault(findings, path, resolved.code, `${shown(key)}: ${resolved.message}`);
    else await checkPicture(held, findings, path, resolved.path);
  }
}
