import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { languageOf, MAX_SUBTITLE_BYTES } from "#features/subtitles/content.ts";
import { insertAddedTrack, requireAddable, storeAudio } from "#features/tracks/audio/add.ts";
import { FetchFailed, followRedirects } from "#features/uploads/fetch-source.ts";
import { abortAfter, englishName, HttpError } from "#lib/base";
import { BlockedDestination, OutboundFailure } from "#lib/network";
import { httpClientOf } from "#platform/outbound/app-http-client.ts";
import type { AssetRow } from "#storage/db/schema.ts";
import { ObjectTooLarge } from "#storage/objects/store.ts";
import type { MuxCall } from "../endpoint.ts";
import { invalidParameter } from "../errors.ts";
import type { Input } from "./schema.ts";

/** Mux's client waits for a minute, and then repeats its request. */
const FETCH_MS = 50_000;
/** Half a day of compressed audio. */
const MAX_AUDIO_BYTES = 2 ** 30;

/** Mux's names of the fields of our subtitles. */
export const TRACK_NAMES = { language: "language_code", label: "name", file: "url" };

type TrackInput = Pick<Input, "url" | "language_code" | "name" | "closed_captions">;

/** Adds a subtitle file to an asset, and returns its id. */
export async function addText(
  call: MuxCall,
  id: number,
  { url, language_code: language = "en", name, closed_captions }: TrackInput,
): Promise<number> {
  languageOf(language, "language_code");
  const bytes = await fetched(call, url as string, textOf);
  const form = new FormData();
  form.set("file", new File([bytes], "subtitles.vtt"));
  form.set("language", language);
  form.set("label", name || (englishName(language) ?? language));
  if (closed_captions) form.set("role", "caption");
  return (await call.native<{ id: number }>("POST", `/api/v1/assets/${id}/subtitles`, form, TRACK_NAMES)).id;
}

/** Adds the audio of a file to a ready asset: workers encode it. Returns its id. */
export async function addAudio(
  call: MuxCall,
  asset: AssetRow,
  { url, language_code = "und", name }: TrackInput,
): Promise<number> {
  const { app, caller } = call;
  const language = languageOf(language_code, "language_code");
  await requireAddable(app, asset, 0);
  const file = await fetched(call, url as string, (answer, signal) =>
    storeAudio(app, asset, { filename: "audio", body: answer, signal, maxBytes: MAX_AUDIO_BYTES }),
  );
  if (file.bytes === 0) invalidParameter("url", "The file at the URL is empty.");
  const label = {
    language,
    name: name || (englishName(language) ?? language),
    role: "alternate",
    is_default: false,
  } as const;
  return (await app.write((tx) => insertAddedTrack(tx, app, caller, asset.id, file, label))).id;
}

/** The bytes of a subtitle file. */
async function textOf(answer: Readable): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of Readable.from(answer) as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > MAX_SUBTITLE_BYTES)
      throw new FetchFailed("source_too_large", `It has more than ${MAX_SUBTITLE_BYTES} bytes.`, false);
    parts.push(part);
  }
  return new Uint8Array(Buffer.concat(parts));
}

/** Reads the file at a URL of the tenant. Throws 400 where it cannot be fetched in time, or is too large. */
async function fetched<T>(
  { app, context }: MuxCall,
  url: string,
  read: (answer: IncomingMessage, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const signal = AbortSignal.any([context.signal, abortAfter(FETCH_MS)]);
  try {
    const client = await httpClientOf(app);
    client.check(url);
    return await read(await followRedirects(client, url, signal), signal);
  } catch (error) {
    if (error instanceof HttpError) throw error;
    if (error instanceof ObjectTooLarge) return invalidParameter("url", `has more than ${MAX_AUDIO_BYTES} bytes`);
    const isTheirs =
      error instanceof FetchFailed || error instanceof BlockedDestination || error instanceof OutboundFailure;
    return invalidParameter("url", isTheirs || signal.aborted ? (error as Error).message : "could not be read");
  }
}
