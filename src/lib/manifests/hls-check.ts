import { DOCUMENT_LIMITS } from "#lib/base";
import { type HlsReference, readHls } from "./hls-read.ts";
import { NeededObjects } from "./needed-objects.ts";
import { resolveReference } from "./relative-reference.ts";

/** An object or playlist that a playlist refers to. `path` is relative to the root of the playlist's own path. */
export type HlsNeed = Pick<HlsReference, "line" | "kind" | "span"> & { path: string };
/** `code` may also be one of a reference error. */
export type HlsCheckFault = { line: number; code: string; message: string };

/**
 * Reads the playlist at `path` and all playlists it refers to, each once. Returns its references and faults; references
 * beyond `stored` objects plus a hundred are left out. Throws TooComplex.
 */
export function checkHls({ text, path, stored }: { text: string; path: string; stored: number }) {
  const { references, segments, ...playlist } = readHls(text);
  const faults: HlsCheckFault[] = playlist.faults;
  const needed = new NeededObjects<HlsNeed>();
  for (const { line, uri, kind, span } of references) {
    if (faults.length >= DOCUMENT_LIMITS.faults) break;
    const resolved = resolveReference(path, uri);
    if ("code" in resolved) faults.push({ line, ...resolved });
    // An object that is a playlist elsewhere is read as one.
    else needed.add({ line, kind, path: resolved.path, ...(span && { span }) }, `${kind} ${resolved.path}`);
  }
  return { ...playlist, faults, references: needed.list(stored) };
}
