import { getAsset } from "#features/assets/queries.ts";
import { notFound } from "#lib/base";
import { separately } from "#platform/http/audit.ts";
import type { MuxCall } from "../endpoint.ts";
import { invalidParameter, notSupported } from "../errors.ts";
import { sameOf } from "../fields.ts";
import { addText } from "./add-track.ts";
import { setMasterAccess } from "./master-access.ts";
import { PROFILES, type Quality, TIERS, tagsOf } from "./record.ts";
import type { AssetSettings, Input } from "./schema.ts";
import { addMissing, wantedNames } from "./static-renditions.ts";

const CLIP_URL = /^mux:\/\/assets\/([1-9]\d{0,14})$/;

type Policies = Pick<AssetSettings, "playback_policies" | "playback_policy" | "advanced_playback_policies">;
/** The playback policies of what is new. Without any it cannot be played without a token. */
export const policiesOf = (settings: Policies): readonly ("public" | "signed")[] => {
  const some = <T>(list: readonly T[] | undefined) => (list?.length ? list : undefined);
  const named = sameOf({
    playback_policies: some(settings.playback_policies),
    playback_policy: some(settings.playback_policy),
    advanced_playback_policies: some(settings.advanced_playback_policies?.map(({ policy }) => policy)),
  });
  return named ?? (["signed"] as const);
};

/** Fields of an asset of ours. Throws 422 for a resolution that the quality does not have. */
export function nativeFields(settings: AssetSettings): Record<string, unknown> {
  const { video_quality, encoding_tier, max_resolution_tier: tier, meta } = settings;
  const byTier = (Object.keys(TIERS) as Quality[]).find((quality) => TIERS[quality] === encoding_tier);
  const quality = sameOf({ video_quality, encoding_tier: byTier });
  if (tier !== undefined && (tier === "1080p") !== (quality === "basic"))
    notSupported(`max_resolution_tier ${tier} with the video_quality ${quality ?? "plus"}`);
  const title = meta?.title?.trim();
  const tags = Object.entries(tagsOf(settings)).filter(([, value]) => value !== null);
  return {
    ...(title && { title }),
    tags: Object.fromEntries(tags),
    playback_policy: policiesOf(settings)[0],
    ...(quality !== undefined && { encoding_profile: PROFILES[quality] }),
  };
}

/** Captions of the audio, as fields of an upload. */
export function captionsOf(input: Input | undefined) {
  const wanted = input?.generated_subtitles ?? [];
  const named = wanted.flatMap(({ language_code, name }) =>
    name === undefined ? [] : [[language_code, name] as const],
  );
  return { captions: wanted.map(({ language_code }) => language_code), caption_labels: Object.fromEntries(named) };
}
type Captions = ReturnType<typeof captionsOf>;

/** Throws 422 for what an input has that is the video, and only text tracks have here. */
export function requireVideo(input: Input | undefined, where: string): void {
  const ofTexts = ["text_type", "language_code", "name", "closed_captions"] as const;
  for (const name of ofTexts) if (input?.[name] !== undefined) notSupported(`${where}.${name} of a video`);
}

/** Creates an asset, and returns its id. An asset that cannot be completed as requested is deleted again. */
export async function createAsset(call: MuxCall, settings: AssetSettings, inputs: readonly Input[]): Promise<number> {
  const [main, ...texts] = inputs;
  if (!main?.url) return invalidParameter("inputs", "must begin with a video that has a url");
  if (main.type === "text") invalidParameter("inputs", "must begin with a video");
  requireVideo(main, "inputs.0");
  for (const { type, url, start_time, end_time, generated_subtitles: generated } of texts) {
    if (type !== "text") notSupported("inputs: more than one video");
    if (start_time !== undefined || end_time !== undefined) notSupported("inputs.start_time and end_time of a text");
    if (!url) invalidParameter("inputs.url", "is required");
    if (generated) notSupported("inputs.generated_subtitles of a text");
  }
  const captions = captionsOf(main);
  const parent = CLIP_URL.exec(main.url)?.[1];
  if (parent === undefined && main.url.startsWith("mux:"))
    invalidParameter("inputs.url", "must be mux://assets/{ASSET_ID}");
  const id =
    parent === undefined
      ? await fromUrl(call, settings, main, captions)
      : await clipOf(call, settings, { ...main, parent: Number(parent) }, captions);
  await completed(call, id, async () => {
    await addPolicies(call, id, settings);
    for (const text of texts) await addText(call, id, text);
    await addRenditions(call, id, settings);
    if (settings.master_access === "temporary") await setMasterAccess(call, id, true);
  });
  return id;
}

/** Adds the further playback ids of a new asset. */
export async function addPolicies(call: MuxCall, id: number, settings: AssetSettings): Promise<void> {
  for (const policy of policiesOf(settings).slice(1))
    await call.native("POST", `/api/v1/assets/${id}/playback_ids`, { policy });
}

/** Adds the files that a new asset is to have. */
const addRenditions = ({ app, caller }: MuxCall, id: number, settings: AssetSettings): Promise<void> =>
  app.write(async (tx) =>
    addMissing(tx, app, (await getAsset(tx, caller, id)) ?? notFound("asset"), wantedNames(settings)),
  );

async function completed(call: MuxCall, id: number, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    await separately(() => call.native("DELETE", `/api/v1/assets/${id}`));
    throw error;
  }
}

async function fromUrl(
  call: MuxCall,
  settings: AssetSettings,
  { url, start_time, end_time }: Input,
  captions: Captions,
) {
  if (start_time !== undefined || end_time !== undefined) notSupported("inputs.start_time and end_time of a URL");
  const body = { ...nativeFields(settings), url, ...captions };
  const made = await call.native<{ asset_id: number }>("POST", "/api/v1/uploads/from_url", body, {
    url: "inputs.0.url",
    title: "meta.title",
    captions: "inputs.0.generated_subtitles",
  });
  return made.asset_id;
}

type ClipInput = Input & { parent: number };
async function clipOf(
  call: MuxCall,
  settings: AssetSettings,
  input: ClipInput,
  { captions }: Captions,
): Promise<number> {
  const { parent, start_time: start = 0, end_time: end } = input;
  if (captions.length > 0) notSupported("inputs.generated_subtitles of a clip");
  const { title, tags, playback_policy, encoding_profile } = nativeFields(settings);
  if (encoding_profile !== undefined) notSupported("video_quality of a clip, which has that of its asset");
  const { duration_seconds } = await call.native<{ duration_seconds: number }>("GET", `/api/v1/assets/${parent}`);
  const body = {
    start_seconds: start,
    end_seconds: end ?? duration_seconds,
    mode: "exact",
    ...(title !== undefined && { title }),
  };
  const { id } = await call.native<{ id: number }>("POST", `/api/v1/assets/${parent}/clips`, body, {
    start_seconds: "inputs.0.start_time",
    end_seconds: "inputs.0.end_time",
    title: "meta.title",
  });
  await completed(call, id, async () => {
    await call.native("PATCH", `/api/v1/assets/${id}`, { video_asset: { playback_policy } });
    // A clip begins with the tags of its asset.
    const inherited = { passthrough: null, creator_id: null, external_id: null };
    await call.native("PATCH", `/api/v1/assets/${id}/tags`, { ...inherited, ...(tags as object) });
  });
  return id;
}
