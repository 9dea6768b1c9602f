import type { SubtitleRow } from "../../../storage/db/schema.ts";
import type { App } from "../../app.ts";
import type { FormFile } from "../../http/form.ts";
import { storageOf } from "../../http/storage.ts";
import { HttpError, invalid } from "../../lib/errors.ts";
import { canonicalLanguage } from "../../lib/language.ts";
import type { Fault } from "../../lib/vtt/parse.ts";
import type { CheckedSubtitle } from "../../lib/vtt/subtitle-file.ts";
import { type ParseOptions, parseDocument } from "../../parsing/parse-document.ts";

/** Of a text in UTF-8. */
export const MAX_SUBTITLE_BYTES = 2_000_000;

const refuse = (field: string, message: string) => invalid(field, message, "invalid_subtitle");

function refuseFaults(field: string, faults: readonly Fault[]): void {
  const messages = faults.map(({ line, message }) => `line ${line}: ${message}`);
  if (messages.length === 0) return;
  const more = messages.length > 1 ? ` (and ${messages.length - 1} more)` : "";
  throw new HttpError(422, "invalid_subtitle", `${field}: ${messages[0]}${more}`, { details: { [field]: messages } });
}

/** What a check found, as the text that is stored. 422 `invalid_subtitle` names the lines at fault. */
function checkedText(field: string, found: CheckedSubtitle): string {
  if ("text" in found) return found.text;
  if ("faults" in found) refuseFaults(field, found.faults);
  return refuse(field, "message" in found ? found.message : "cannot be read");
}

/** A WebVTT text as it is stored, with its header. 422 `invalid_subtitle`, `document_too_complex`. */
export async function checkedVtt(app: App, field: string, content: string, options: ParseOptions): Promise<string> {
  if (content.length > MAX_SUBTITLE_BYTES || Buffer.byteLength(content) > MAX_SUBTITLE_BYTES)
    refuse(field, `must have at most ${MAX_SUBTITLE_BYTES} bytes in UTF-8`);
  return checkedText(field, await parseDocument(app, "vtt", { text: content }, options));
}

/** An uploaded file as WebVTT. 422 `invalid_subtitle`, `document_too_complex`. */
export async function vttOfFile(
  app: App,
  { filename, bytes }: Pick<FormFile, "filename" | "bytes">,
  options: ParseOptions,
): Promise<string> {
  const text = checkedText("file", await parseDocument(app, "subtitleFile", { filename, bytes }, options));
  if (Buffer.byteLength(text) > MAX_SUBTITLE_BYTES)
    refuse("file", `must have at most ${MAX_SUBTITLE_BYTES} bytes in UTF-8`);
  return text;
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
