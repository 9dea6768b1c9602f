import { Readable } from "node:stream";
import { HttpError } from "../../../lib/errors.ts";
import { abortAfter } from "../../../lib/timers.ts";
import { httpClientOf } from "../../../outbound/app-http-client.ts";
import { BlockedDestination, OutboundFailure } from "../../../outbound/http-client.ts";
import { MAX_SUBTITLE_BYTES } from "../../subtitles/content.ts";
import { FetchFailed, followRedirects } from "../../uploads/fetch-source.ts";
import type { MuxCall } from "../endpoint.ts";
import { invalidParameter, notSupported } from "../errors.ts";
import { setMasterAccess } from "./master-access.ts";
import { PROFILES, type Quality, TIERS, tagsOf } from "./record.ts";
import type { AssetSettings, Input } from "./schema.ts";

const CLIP_URL = /^mux:\/\/assets\/([1-9]\d{0,14})$/;
const FETCH_MS = 30_000;

type Policies = Pick<AssetSettings, "playback_policies" | "playback_policy" | "advanced_playback_policies">;
/** The playback policies of what is new. Without any it cannot be played without a token. */
export const policiesOf = (settings: Policies): readonly ("public" | "signed")[] => {
  const named =
    settings.playback_policies ??
    settings.playback_policy ??
    settings.advanced_playback_policies?.map(({ policy }) => policy) ??
    [];
  return named.length > 0 ? named : (["signed"] as const);
};

/** Fields of an asset of ours. Throws 422 for a resolution that the quality does not have. */
export function nativeFields(settings: AssetSettings): Record<string, unknown> {
  const { video_quality, encoding_tier, max_resolution_tier: tier, meta } = settings;
  const byTier = (Object.keys(TIERS) as Quality[]).find((quality) => TIERS[quality] === encoding_tier);
  const quality = video_quality ?? byTier;
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

/** Creates an asset, and returns its id. An asset that cannot be completed as requested is deleted again. */
export async function createAsset(call: MuxCall, settings: AssetSettings, inputs: readonly Input[]): Promise<number> {
  const [main, ...texts] = inputs;
  if (!main?.url) return invalidParameter("inputs", "must begin with a video that has a url");
  if (main.type === "text") invalidParameter("inputs", "must begin with a video");
  for (const { type, url, generated_subtitles: generated } of texts) {
    if (type !== "text") notSupported("inputs: more than one video");
    if (!url) invalidParameter("inputs.url", "is required");
    if (generated) notSupported("inputs.generated_subtitles of a text");
  }
  const captions = (main.generated_subtitles ?? []).map(({ language_code }) => language_code);
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
    if (settings.master_access === "temporary") await setMasterAccess(call, id, true);
  });
  return id;
}

/** Adds the further playback ids of a new asset. */
export async function addPolicies(call: MuxCall, id: number, settings: AssetSettings): Promise<void> {
  for (const policy of policiesOf(settings).slice(1))
    await call.native("POST", `/api/v1/assets/${id}/playback_ids`, { policy });
}

async function completed(call: MuxCall, id: number, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    await call.native("DELETE", `/api/v1/assets/${id}`);
    throw error;
  }
}

async function fromUrl(
  call: MuxCall,
  settings: AssetSettings,
  { url, start_time, end_time }: Input,
  captions: string[],
) {
  if (start_time !== undefined || end_time !== undefined) notSupported("inputs.start_time and end_time of a URL");
  const body = { ...nativeFields(settings), url, captions };
  return (await call.native<{ asset_id: number }>("POST", "/api/v1/uploads/from_url", body)).asset_id;
}

type ClipInput = Input & { parent: number };
async function clipOf(call: MuxCall, settings: AssetSettings, input: ClipInput, captions: string[]): Promise<number> {
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
  const { id } = await call.native<{ id: number }>("POST", `/api/v1/assets/${parent}/clips`, body);
  await completed(call, id, async () => {
    await call.native("PATCH", `/api/v1/assets/${id}`, { video_asset: { playback_policy } });
    // A clip begins with the tags of its asset.
    const inherited = { passthrough: null, creator_id: null, external_id: null };
    await call.native("PATCH", `/api/v1/assets/${id}/tags`, { ...inherited, ...(tags as object) });
  });
  return id;
}

type TextInput = Pick<Input, "url" | "language_code" | "name">;
/** Adds a subtitle file to an asset, and returns its id. */
export async function addText(
  call: MuxCall,
  id: number,
  { url, language_code: language = "en", name }: TextInput,
): Promise<number> {
  const form = new FormData();
  form.set("file", new File([await fetchedText(call, url as string)], "subtitles.vtt"));
  form.set("language", language);
  form.set("label", name ?? languageName(language));
  return (await call.native<{ id: number }>("POST", `/api/v1/assets/${id}/subtitles`, form)).id;
}

function languageName(tag: string): string {
  try {
    return new Intl.DisplayNames(["en"], { type: "language" }).of(tag) ?? tag;
  } catch {
    return tag;
  }
}

/** The bytes of a subtitle file at a URL of the tenant. Throws 400 where it cannot be fetched, or is too large. */
async function fetchedText({ app, context }: MuxCall, url: string): Promise<Uint8Array<ArrayBuffer>> {
  const signal = AbortSignal.any([context.signal, abortAfter(FETCH_MS)]);
  try {
    const client = await httpClientOf(app);
    client.check(url);
    const answer = await followRedirects(client, url, signal);
    const parts: Buffer[] = [];
    let bytes = 0;
    for await (const part of Readable.from(answer) as AsyncIterable<Buffer>) {
      bytes += part.length;
      if (bytes > MAX_SUBTITLE_BYTES)
        throw new FetchFailed("source_too_large", `It has more than ${MAX_SUBTITLE_BYTES} bytes.`, false);
      parts.push(part);
    }
    return new Uint8Array(Buffer.concat(parts));
  } catch (error) {
    if (error instanceof HttpError) throw error;
    const isTheirs =
      error instanceof FetchFailed || error instanceof BlockedDestination || error instanceof OutboundFailure;
    return invalidParameter("url", isTheirs || signal.aborted ? (error as Error).message : "could not be read");
  }
}
