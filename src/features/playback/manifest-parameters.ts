import { HttpError, invalid } from "#lib/base";
import { videoCodecs } from "#lib/codecs";
import type { SideRange, VariantSelection } from "#lib/manifests";
import { STEREO_CHANNELS } from "#protocol/audio-renditions.ts";
import type { AssetRow } from "#storage/db/schema.ts";
import { variantReference } from "./rendition-url.ts";

/**
 * What the query of a manifest's URL selects: its sample entries that are left out, its only variant, its audio, and for the
 * master playlist its resolutions and their order.
 */
export type ManifestParameters = VariantSelection & { hidden: string[]; variant: string | null; isStereo: boolean };

/**
 * Reads `codecs`, `channels` and, for the master playlist, `rendition`, `max_resolution`, `min_resolution` and
 * `rendition_order`. Throws 422 `validation_failed` for values that the
 * asset does not have, and where no rendition is left.
 */
export function manifestParameters(asset: AssetRow, query: URLSearchParams, isMaster: boolean): ManifestParameters {
  const hidden = hiddenEntries(query.get("codecs"));
  const isStereo = isStereoOnly(query.get("channels"));
  const chosen = isMaster ? query.get("rendition") : null;
  const variant = chosen === null ? null : variantOf(asset, chosen);
  requireVariant(asset, hidden, chosen);
  const { sides, isAscending } = isMaster ? selectionOf(query) : { sides: null, isAscending: false };
  return { hidden, variant, isStereo, sides, isAscending };
}

/**
 * Reads `max_resolution`, `min_resolution` and `rendition_order`, which also the playlist of a live channel has. Throws 422
 * `validation_failed`.
 */
export const selectionOf = (query: URLSearchParams): VariantSelection => ({
  sides: sidesOf(query),
  isAscending: isAscendingOrder(query.get("rendition_order")),
});

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
  const what = chosen === null ? "the asset" : `rendition ${chosen}`;
  const own = names.map(({ name }) => name).join(", ");
  throw new HttpError(422, "validation_failed", `codecs must contain a codec of ${what}: ${own}.`);
}

/** Resolutions by the pixels of their shorter side. */
const RESOLUTIONS = ["270p", "360p", "480p", "540p", "720p", "1080p", "1440p", "2160p"];

/** The resolutions that are kept; null without parameters. Throws 422 `validation_failed` for others, and for none. */
function sidesOf(query: URLSearchParams): SideRange | null {
  const [min, max] = ["min_resolution", "max_resolution"].map((name) => {
    const value = query.get(name);
    if (value === null || RESOLUTIONS.includes(value)) return value === null ? null : Number.parseInt(value, 10);
    return invalid(name, `must be one of ${RESOLUTIONS.join(", ")}`);
  });
  if (min == null && max == null) return null;
  const range = { min: min ?? 0, max: max ?? Number.MAX_SAFE_INTEGER };
  return range.min > range.max ? invalid("min_resolution", "must not be above max_resolution") : range;
}

/** Whether the variants begin with the lowest one; ours begin with the highest. Throws 422 `validation_failed`. */
function isAscendingOrder(order: string | null): boolean {
  if (order !== null && order !== "asc" && order !== "desc") invalid("rendition_order", "must be asc or desc");
  return order === "asc";
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
