import { and, eq, inArray } from "drizzle-orm";
import type { App } from "#app.ts";
import { isAudioOnly, sideOf } from "#features/assets/static-names.ts";
import { emitStaticAdded, emitStaticDeleted } from "#features/assets/static-rendition-events.ts";
import { hasMp4, mp4Bytes } from "#features/static-renditions/mp4.ts";
import { addStaticRendition, staticRenditionsOf } from "#features/static-renditions/queries.ts";
import { toStaticRendition } from "#features/static-renditions/schema.ts";
import { bytesOfAll } from "#features/static-renditions/sizes.ts";
import type { Db } from "#storage/db/open.ts";
import { type AssetRow, type StaticRenditionRow, staticRenditions } from "#storage/db/schema.ts";

/** The names of ours that Mux has. */
// biome-ignore format: one line
export const MUX_RESOLUTIONS = ["highest", "audio-only", "2160p", "1440p", "1080p", "720p", "540p", "480p", "360p", "270p"] as const;
type Resolution = (typeof MUX_RESOLUTIONS)[number];
type File =
  | `${"low" | "medium" | "high" | "highest" | "capped-1080p" | Exclude<Resolution, "audio-only">}.mp4`
  | "audio.m4a";
const isResolution = (name: string): name is Resolution => (MUX_RESOLUTIONS as readonly string[]).includes(name);

/** The files of each value of `mp4_support`, by our names. */
const SUPPORT = {
  none: [],
  standard: ["low", "medium", "high"],
  "audio-only,capped-1080p": ["audio-only", "capped-1080p"],
  "capped-1080p": ["capped-1080p"],
  "audio-only": ["audio-only"],
} as const satisfies Record<string, readonly string[]>;
export type Mp4Support = keyof typeof SUPPORT;
const SUPPORTED: readonly string[] = ["low", "medium", "high", "capped-1080p"];

/** The value of `mp4_support` whose files the asset has. An audio file alone is a static rendition. */
function supportOf(names: readonly string[]): Mp4Support {
  if (names.includes("low")) return "standard";
  if (!names.includes("capped-1080p")) return "none";
  return names.includes("audio-only") ? "audio-only,capped-1080p" : "capped-1080p";
}

type Wanted = {
  mp4_support?: Mp4Support | undefined;
  static_renditions?: readonly { resolution: string }[] | undefined;
};
/** Our names of what an asset is created with. */
export const wantedNames = ({ mp4_support: support = "none", static_renditions: listed = [] }: Wanted): string[] => [
  ...new Set([...SUPPORT[support], ...listed.map(({ resolution }) => resolution)]),
];

/** Adds those that an asset does not have, in the transaction in which it was read. */
export async function addMissing(tx: Db, app: App, asset: AssetRow, names: readonly string[]): Promise<void> {
  const present = (await staticRenditionsOf(tx, asset.id)).map(({ name }) => name);
  const added: StaticRenditionRow[] = [];
  for (const name of names) if (!present.includes(name)) added.push(await addStaticRendition(tx, app, asset, name));
  await emitStaticAdded(tx, app, asset, added);
}

/** Makes the files of `mp4_support` those of an asset that was read in the same transaction. */
export async function replaceSupport(tx: Db, app: App, asset: AssetRow, support: Mp4Support): Promise<void> {
  const wanted: readonly string[] = SUPPORT[support];
  const before = SUPPORT[supportOf((await staticRenditionsOf(tx, asset.id)).map(({ name }) => name))];
  const unwanted = [...SUPPORTED, ...before].filter((name) => !wanted.includes(name));
  const own = and(eq(staticRenditions.assetId, asset.id), inArray(staticRenditions.name, unwanted));
  const deleted = unwanted.length > 0 ? await tx.delete(staticRenditions).where(own).returning().all() : [];
  await addMissing(tx, app, asset, wanted);
  await emitStaticDeleted(tx, app, asset, deleted);
}

/** A static rendition as Mux shows it; those of `mp4_support` have no id. `size` of its file in bytes. */
export function toMuxRendition(
  app: App,
  asset: AssetRow,
  row: Parameters<typeof toStaticRendition>[2],
  size: number | null,
) {
  const { id, name, file, status, width, height, bytes, bandwidth } = toStaticRendition(app, asset, row, size);
  return {
    ...(isResolution(name) && {
      id: String(id),
      resolution: name,
      status,
      type: "standard" as const,
      ...(status === "ready" && { resolution_tier: tierOf(name, sideOf({ width, height })) }),
    }),
    name: file as File,
    ext: isAudioOnly(name) ? ("m4a" as const) : ("mp4" as const),
    ...(width !== null && { width }),
    ...(height !== null && { height }),
    ...(bandwidth !== null && { bitrate: bandwidth }),
    ...filesize(bytes),
  };
}

const filesize = (bytes: number | null) => (bytes === null ? {} : { filesize: String(bytes) });

function tierOf(name: string, side: number): "audio-only" | "720p" | "1080p" | "1440p" | "2160p" {
  if (isAudioOnly(name)) return "audio-only";
  return side <= 720 ? "720p" : side <= 1080 ? "1080p" : side <= 1440 ? "1440p" : "2160p";
}

/** `mp4_support` and `static_renditions` of an asset. `ownFile`: the one that its encoding profile makes. */
export async function renditionsOf(app: App, asset: AssetRow) {
  const rows = await staticRenditionsOf(app.db, asset.id);
  const names = rows.map(({ name }) => name);
  const files = rows.filter(({ name }) => isResolution(name) || SUPPORTED.includes(name));
  const own = hasMp4(asset) && !names.includes("highest") ? [ownFile(asset, await mp4Bytes(app, asset))] : [];
  const statuses = rows.map((row) => toStaticRendition(app, asset, row, null).status);
  const status = statuses.find((one) => one === "preparing" || one === "errored") ?? "ready";
  const sizes = await bytesOfAll(app, asset, files);
  const listed = [...own, ...files.map((row, index) => toMuxRendition(app, asset, row, sizes[index] ?? null))];
  return {
    mp4_support: supportOf(names),
    static_renditions:
      listed.length === 0
        ? { status: "disabled" as const }
        : { status: status as "ready" | "preparing" | "errored", files: listed },
  };
}

const ownFile = ({ id, width, height }: AssetRow, bytes: number | null) => ({
  id: `highest-${id}`,
  name: "highest.mp4" as const,
  resolution: "highest" as const,
  type: "standard" as const,
  ext: "mp4" as const,
  status: "ready" as const,
  ...(width !== null && { width }),
  ...(height !== null && { height }),
  ...filesize(bytes),
});
