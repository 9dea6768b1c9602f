import type { App } from "#app.ts";
import { canonicalLanguage, HttpError, invalid, MAX_SUBTITLE_BYTES } from "#lib/base";
import type { CheckedSubtitle, CheckedText, Fault } from "#lib/subtitles";
import type { FormFile } from "#platform/http/form.ts";
import { storageOf } from "#platform/http/storage.ts";
import { type ParseOptions, parseDocument } from "#platform/parsing/parse-document.ts";
import type { SubtitleRow } from "#storage/db/schema.ts";
import { readSmallObject } from "#storage/objects/small-objects.ts";

export { MAX_SUBTITLE_BYTES };

const refuse = (field: string, message: string) => invalid(field, message, "invalid_subtitle");

function refuseFaults(field: string, faults: readonly Fault[]): void {
  const messages = faults.map(({ line, message }) => `line ${line}: ${message}`);
  if (messages.length === 0) return;
  const more = messages.length > 1 ? ` (and ${messages.length - 1} more)` : "";
  throw new HttpError(422, "invalid_subtitle", `${field}: ${messages[0]}${more}`, { details: { [field]: messages } });
}

/** The checked text to store. Throws 422 `invalid_subtitle` with the faulty lines. */
function checkedText(field: string, checked: CheckedSubtitle): CheckedText {
  if ("text" in checked) {
    requireSize(field, checked.text);
    return checked;
  }
  if ("faults" in checked) refuseFaults(field, checked.faults);
  return refuse(field, "message" in checked ? checked.message : "cannot be read");
}

function requireSize(field: string, text: string): void {
  if (text.length > MAX_SUBTITLE_BYTES || Buffer.byteLength(text) > MAX_SUBTITLE_BYTES)
    refuse(field, `must have at most ${MAX_SUBTITLE_BYTES} bytes in UTF-8`);
}

/** Checks and repairs a WebVTT text. Throws 422 `invalid_subtitle`, `document_too_complex`. */
export async function checkedVtt(
  app: App,
  field: string,
  content: string,
  options: ParseOptions,
): Promise<CheckedText> {
  requireSize(field, content);
  return checkedText(field, await parseDocument(app, "vtt", { text: content }, options));
}

/** Converts an uploaded file to WebVTT. Throws 422 `invalid_subtitle`, `document_too_complex`. */
export async function vttOfFile(
  app: App,
  { filename, bytes }: Pick<FormFile, "filename" | "bytes">,
  options: ParseOptions,
): Promise<CheckedText> {
  return checkedText("file", await parseDocument(app, "subtitleFile", { filename, bytes }, options));
}

/** The canonical tag. Throws 422 `invalid_language`. */
export const languageOf = (tag: string, field = "language"): string =>
  canonicalLanguage(tag) ?? invalid(field, "must be a BCP 47 language tag such as en or pt-BR", "invalid_language");

/** The text of a track; empty for a failed or pending one without text. Throws 503 when storage is off. */
export async function subtitleContent(app: App, { id, objectKey, status }: SubtitleRow): Promise<string> {
  const bytes = await readSmallObject(storageOf(app), objectKey);
  if (!bytes && (status === "failed" || status === "pending")) return "";
  if (!bytes) throw new Error(`The content of subtitle ${id} does not exist in storage`);
  return bytes.toString("utf8");
}
