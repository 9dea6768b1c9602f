import type { SubtitleRow } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import type { FormFile } from "../../http/form.ts";
import { storageOf } from "../../http/storage.ts";
import { HttpError, invalid } from "../../lib/errors.ts";
import { inSlices } from "../../lib/in-slices.ts";
import { canonicalLanguage } from "../../lib/language.ts";
import { decodeText } from "../../lib/vtt/decode.ts";
import { type Fault, parsing, withHeader } from "../../lib/vtt/parse.ts";
import { fromSrt, looksLikeSrt } from "../../lib/vtt/srt.ts";

/** Of a text in UTF-8. */
export const MAX_SUBTITLE_BYTES = 2_000_000;

const refuse = (field: string, message: string) => invalid(field, message, "invalid_subtitle");

function refuseFaults(field: string, faults: readonly Fault[]): void {
  const messages = faults.map(({ line, message }) => `line ${line}: ${message}`);
  if (messages.length === 0) return;
  const more = messages.length > 1 ? ` (and ${messages.length - 1} more)` : "";
  throw new HttpError(422, "invalid_subtitle", `${field}: ${messages[0]}${more}`, { details: { [field]: messages } });
}

/** A WebVTT text as it is stored, with its header. 422 `invalid_subtitle` tells the lines at fault. */
export async function checkedVtt(field: string, content: string): Promise<string> {
  if (content.length > MAX_SUBTITLE_BYTES || Buffer.byteLength(content) > MAX_SUBTITLE_BYTES)
    refuse(field, `must have at most ${MAX_SUBTITLE_BYTES} bytes in UTF-8`);
  if (content.includes("\0")) refuse(field, "must not hold a NUL character");
  if (!content.isWellFormed()) refuse(field, "must be well-formed Unicode");
  const { text, addedLines } = withHeader(content.replace(/^\ufeff/, ""));
  const { cues, faults } = await inSlices(parsing(text, addedLines));
  refuseFaults(field, faults);
  if (cues.length === 0) refuse(field, "must hold at least one cue");
  return text;
}

/** An uploaded file as WebVTT: by its name, else by what it holds; SubRip is converted. */
export async function vttOfFile({ filename, bytes }: Pick<FormFile, "filename" | "bytes">): Promise<string> {
  const decoded = decodeText(bytes);
  if ("fault" in decoded) return refuse("file", `cannot be read: ${decoded.fault}`);
  const { text } = decoded;
  const extension = /\.(vtt|srt)$/i.exec(filename)?.[1]?.toLowerCase();
  const isSrt = !text.startsWith("WEBVTT") && (extension === "srt" || (!extension && looksLikeSrt(text)));
  if (!isSrt) return checkedVtt("file", text);
  const converted = await inSlices(fromSrt(text));
  refuseFaults("file", converted.faults);
  return checkedVtt("file", converted.text);
}

/** The canonical tag. 422 `invalid_language`. */
export const languageOf = (tag: string, field = "language"): string =>
  canonicalLanguage(tag) ?? invalid(field, "must be a BCP 47 language tag such as en or pt-BR", "invalid_language");

/** What a track says: nothing, where it failed and has no text. 503 where storage is off. */
export async function subtitleContent(app: App, { id, objectKey, status }: SubtitleRow): Promise<string> {
  const found = await storageOf(app).get(objectKey);
  if (!found && status === "failed") return "";
  if (!found) throw new Error(`The text of subtitle ${id} is not in storage`);
  return Buffer.concat(await found.body.toArray()).toString("utf8");
}
