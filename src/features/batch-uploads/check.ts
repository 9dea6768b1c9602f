import { and, eq, inArray } from "drizzle-orm";
import * as v from "valibot";
import type { App } from "#app.ts";
import { backgroundPacer, canonicalLanguage, clientClosed, DOCUMENT_LIMITS, HttpError, tooComplex } from "#lib/base";
import type { CheckedText } from "#lib/subtitles";
import { longArray } from "#platform/http/long-arrays.ts";
import { hasManyValues } from "#platform/http/validate.ts";
import { type ParseOptions, parseUtf8 } from "#platform/parsing/parse-document.ts";
import { assets, type BatchRow, type RenditionRow } from "#storage/db/schema.ts";
import { vttOfFile } from "../subtitles/content.ts";
import { MAX_CUE_BYTES, MAX_CUES, USE_STORAGE_KEY } from "../tracks/timed/schema.ts";
import {
  addFault,
  checkDash,
  checkHls,
  checkMp4,
  checkStoryboard,
  checkThumbnail,
  type Findings,
  type ParseOne,
  quotedKey,
  requireObject,
  TOO_COMPLEX,
} from "./check-media.ts";
import { type Inventory, inventoryOf } from "./inventory.ts";
import { type Fault, ManifestAsset, type ManifestAssetInput } from "./manifest-schema.ts";

export type CheckedAsset = {
  given: ManifestAssetInput;
  durationSeconds: number;
  /** Paths are relative to the batch. */
  renditions: RenditionRow[];
  /** Keys of its media, relative to the batch: without source and subtitles. */
  needed: Map<string, number>;
  sourceBytes: number;
};
export type Checked = {
  faults: Fault[];
  assets: (CheckedAsset | { title: string | null; faults: number })[];
  held: Inventory;
};

/**
 * Reports everything that prevents a manifest from becoming playable assets, with positions. Changes nothing. After a
 * document that exceeds a limit no further asset is checked, so a manifest costs at most one such document.
 */
export async function checkManifest(
  app: App,
  batch: BatchRow,
  manifest: { assets: readonly unknown[] },
  signal?: AbortSignal,
): Promise<Checked> {
  const parsing = { tenantId: batch.tenantId, signal };
  const parse = parserOf(app, parsing);
  const inventory = await inventoryOf(app, batch);
  const faults: Fault[] = [];
  const checked: Checked["assets"] = [];
  const pace = backgroundPacer();
  for (const [index, given] of manifest.assets.entries()) {
    await pace();
    if (signal?.aborted) throw clientClosed();
    const path = `assets[${index}]`;
    const before = faults.length;
    const isLarge = hasManyValues(given);
    const long = isLarge ? longArray(ManifestAsset, given) : null;
    if (long) {
      faults.push({ path: [path, ...long.path].join("."), code: "validation_failed", message: long.message });
      checked.push({ title: titleOf(given), faults: 1 });
      continue;
    }
    const parsed = v.safeParse(ManifestAsset, given, { abortPipeEarly: true, abortEarly: isLarge });
    if (!parsed.success) {
      faults.push(...shapeFaults(path, parsed.issues));
      checked.push({ title: titleOf(given), faults: faults.length - before });
      continue;
    }
    if (faults.some(({ code }) => code === TOO_COMPLEX)) {
      checked.push({ title: parsed.output.title, faults: 1 });
      continue;
    }
    const findings: Findings = { faults: [], needed: new Set(), parse };
    const readSubtitle = (key: string) => subtitleText(app, inventory, key, parsing);
    const asset = await checkAsset(inventory, findings, { path, given: parsed.output, readSubtitle });
    faults.push(...findings.faults);
    checked.push(findings.faults.length === 0 ? asset : { title: parsed.output.title, faults: findings.faults.length });
  }
  faults.push(...(await existingIds(app, batch, manifest.assets)));
  return { faults, assets: checked, held: inventory };
}

/** Parses the documents of a manifest, up to a total size. */
function parserOf(app: App, options: ParseOptions): ParseOne {
  let bytes = 0;
  return (name, input) => {
    bytes += input.utf8.byteLength;
    if (bytes > DOCUMENT_LIMITS.batchDocumentBytes)
      return Promise.reject(
        tooComplex(`The documents of the manifest have over ${DOCUMENT_LIMITS.batchDocumentBytes} bytes in all.`),
      );
    return parseUtf8(app, name, input, options);
  };
}

const titleOf = (entry: unknown) => {
  const title = (entry as { title?: unknown } | null)?.title;
  return typeof title === "string" ? title.slice(0, 500) : null;
};

function shapeFaults(path: string, issues: readonly v.BaseIssue<unknown>[]): Fault[] {
  return issues.slice(0, 20).map((issue) => {
    const at = (issue.path ?? []).map(({ key }) => (typeof key === "number" ? `[${key}]` : `.${String(key)}`)).join("");
    const isMissing = issue.input === undefined;
    return {
      path: path + at,
      code: isMissing ? "parameter_missing" : "validation_failed",
      message: isMissing ? "is required" : issue.message,
    };
  });
}

async function checkAsset(
  inventory: Inventory,
  findings: Findings,
  { path, given, readSubtitle }: { path: string; given: ManifestAssetInput; readSubtitle: ReadSubtitle },
): Promise<CheckedAsset> {
  const { hls, dash, thumbnail_path, storyboard_path, mp4_path, source_key } = given;
  const media = await checkHls(inventory, findings, `${path}.hls.manifest_path`, hls.manifest_path);
  if (dash) await checkDash(inventory, findings, `${path}.dash.manifest_path`, dash.manifest_path);
  if (thumbnail_path) await checkThumbnail(inventory, findings, `${path}.thumbnail_path`, thumbnail_path);
  if (storyboard_path) await checkStoryboard(inventory, findings, `${path}.storyboard_path`, storyboard_path);
  if (mp4_path) await checkMp4(inventory, findings, `${path}.mp4_path`, mp4_path);
  const variants = new Map(media.renditions.map((rendition) => [rendition.playlist_path, rendition]));
  for (const [index, { playlist_path }] of (hls.renditions ?? []).entries()) {
    const playlistPath = `${path}.hls.renditions[${index}].playlist_path`;
    if (!requireObject(inventory, findings, playlistPath, playlist_path)) continue;
    if (playlist_path !== hls.manifest_path && !variants.has(playlist_path))
      addFault(
        findings,
        playlistPath,
        "rendition_unknown",
        `${quotedKey(playlist_path)} is not a variant of the master playlist.`,
      );
  }
  const needed = new Map([...findings.needed].map((key) => [key, inventory.objects.get(key)?.bytes ?? 0]));
  await checkSubtitles(inventory, findings, path, { ...given, readSubtitle });
  checkTracks(findings, path, given);
  const source = source_key ?? null;
  if (source !== null && requireObject(inventory, findings, `${path}.source_key`, source) && needed.has(source))
    addFault(
      findings,
      `${path}.source_key`,
      "source_is_media",
      `${quotedKey(source)} is one of the media files; omit source_key.`,
    );
  return {
    given,
    durationSeconds: given.duration_seconds ?? media.durationSeconds,
    renditions: hls.renditions?.length ? hls.renditions.map((one) => merged(one, variants)) : media.renditions,
    needed,
    sourceBytes: source === null ? 0 : (inventory.objects.get(source)?.bytes ?? 0),
  };
}

type ManifestRendition = NonNullable<ManifestAssetInput["hls"]["renditions"]>[number];

/** The client's value, or else that of the master playlist. */
function merged(rendition: ManifestRendition, variants: ReadonlyMap<string, RenditionRow>): RenditionRow {
  const variant = variants.get(rendition.playlist_path);
  const height = rendition.height ?? variant?.height ?? null;
  return {
    name: rendition.name ?? (height ? `${height}p` : (variant?.name ?? "audio")),
    width: rendition.width ?? variant?.width ?? null,
    height,
    bandwidth: rendition.bandwidth ?? variant?.bandwidth ?? 0,
    average_bandwidth: variant?.average_bandwidth ?? null,
    codecs: rendition.codecs ?? variant?.codecs ?? "",
    frame_rate: rendition.frame_rate ?? variant?.frame_rate ?? null,
    hdr: variant?.hdr ?? null,
    playlist_path: rendition.playlist_path,
  };
}

type ReadSubtitle = (key: string) => Promise<CheckedText>;

async function checkSubtitles(
  inventory: Inventory,
  findings: Findings,
  path: string,
  { subtitles, readSubtitle }: Pick<ManifestAssetInput, "subtitles"> & { readSubtitle: ReadSubtitle },
): Promise<void> {
  const seen = new Set<string>();
  for (const [index, { path: key, language }] of subtitles.entries()) {
    const place = `${path}.subtitles[${index}]`;
    const canonical = canonicalLanguage(language);
    if (!canonical)
      addFault(findings, `${place}.language`, "invalid_language", "must be a BCP 47 language tag such as en or pt-BR");
    else if (seen.has(canonical))
      addFault(findings, `${place}.language`, "language_taken", `${canonical} appears twice`);
    else seen.add(canonical);
    if (!requireObject(inventory, findings, `${place}.path`, key)) continue;
    try {
      await readSubtitle(key);
    } catch (error) {
      if (!(error instanceof HttpError) || error.status !== 422) throw error;
      addFault(findings, `${place}.path`, error.code, `${quotedKey(key)}: ${error.message}`);
      if (error.code === TOO_COMPLEX) return;
    }
  }
}

/** An object of the batch as WebVTT. Throws 422 `invalid_subtitle`, `document_too_complex`. */
export async function subtitleText(
  app: App,
  inventory: Inventory,
  key: string,
  parsing: ParseOptions,
): Promise<CheckedText> {
  const tooLarge = (inventory.objects.get(key)?.bytes ?? 0) > DOCUMENT_LIMITS.documentBytes;
  const bytes = tooLarge ? null : await inventory.read(key);
  if (!bytes) throw new HttpError(422, "invalid_subtitle", tooLarge ? "It is over 2 MB." : "It is gone.");
  return vttOfFile(app, { filename: key, bytes }, parsing);
}

function checkTracks(findings: Findings, path: string, { tracks }: ManifestAssetInput): void {
  const seen = new Set<string>();
  for (const [index, { kind, name, cues, storage_key }] of tracks.entries()) {
    const place = `${path}.tracks[${index}]`;
    const identity = `${kind}\n${name}`;
    if (seen.has(identity))
      addFault(findings, `${place}.name`, "validation_failed", `the ${kind} track ${name} appears twice`);
    seen.add(identity);
    if (cues == null && storage_key == null)
      addFault(findings, place, "cues_or_storage_key_required", "set cues, storage_key or both");
    if (cues && (cues.length > MAX_CUES || Buffer.byteLength(JSON.stringify(cues)) > MAX_CUE_BYTES))
      addFault(findings, `${place}.cues`, "cues_too_large", USE_STORAGE_KEY);
  }
}

async function existingIds(app: App, batch: BatchRow, entries: readonly unknown[]): Promise<Fault[]> {
  const ids = entries.map((asset) => (asset as { external_id?: unknown } | null)?.external_id);
  const externalIds = ids.filter((id) => typeof id === "string");
  if (externalIds.length === 0) return [];
  const rows = await app.db
    .select({ externalId: assets.externalId })
    .from(assets)
    .where(and(eq(assets.tenantId, batch.tenantId), inArray(assets.externalId, externalIds)))
    .all();
  const existing = new Set(rows.map(({ externalId }) => externalId));
  return ids.flatMap((id, index) => {
    if (typeof id !== "string" || !(existing.has(id) || ids.indexOf(id) < index)) return [];
    return [{ path: `assets[${index}].external_id`, code: "external_id_taken", message: `${id} is taken` }];
  });
}
