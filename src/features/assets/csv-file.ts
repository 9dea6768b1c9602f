import { randomUUID } from "node:crypto";
import { type FileHandle, open, readdir, rm, unlink } from "node:fs/promises";
import { join } from "node:path";
import type { App } from "#app.ts";
import { DOCUMENT_LIMITS, HttpError, tooComplex } from "#lib/base";
import { isForm, streamForm } from "#platform/http/form.ts";
import type { Context } from "#platform/http/route.ts";
import { diskOf } from "#platform/limits/disk-reserve.ts";
import { type ParseOptions, parseDocument } from "#platform/parsing/parse-document.ts";
import { asStorageFull } from "#storage/objects/space.ts";
import { unescapeCell } from "./csv-cells.ts";

const PREFIX = "import-";
/** Bytes that are parsed at once. */
const PIECE_BYTES = 128 * 1024;
const LARGEST_PIECE = 2 * DOCUMENT_LIMITS.csvRowBytes;

const unreadable = (why: string): never => {
  throw new HttpError(422, "validation_failed", `The file is invalid: ${why}.`, { details: { file: [why] } });
};
export type Spooled = { file: FileHandle; fields: Record<string, string> };

/**
 * The CSV of a request, from the form field `file` or the body, in an unlinked temporary file. Throws 413, 415, 422,
 * 507.
 */
export async function spool(app: App, { request, incoming }: Pick<Context, "request" | "incoming">): Promise<Spooled> {
  const { headers } = request;
  if (Number(headers.get("content-length") ?? 0) > DOCUMENT_LIMITS.csvBytes) throw tooLarge();
  await diskOf(app).ensure(Number(headers.get("content-length") ?? 0));
  const file = await temporaryFile(app);
  try {
    const write = async (body: AsyncIterable<Uint8Array>) => {
      let bytes = 0;
      for await (const chunk of body) {
        bytes += chunk.length;
        if (bytes > DOCUMENT_LIMITS.csvBytes) throw tooLarge();
        await append(app, file, chunk);
      }
      return true;
    };
    if (isForm(headers)) {
      const onFile = ({ body }: { body: AsyncIterable<Uint8Array> }) => write(body);
      const form = await streamForm({ request, incoming }, { maxFileBytes: DOCUMENT_LIMITS.csvBytes, onFile });
      if (!form.file)
        throw new HttpError(422, "parameter_missing", "file: is required", { details: { file: ["is required"] } });
      return { file, fields: form.fields };
    }
    if (!/^(text|application)\/csv\b/i.test(headers.get("content-type") ?? ""))
      throw new HttpError(415, "unsupported_media_type", "Send text/csv, or a form with a file.");
    const body: AsyncIterable<Uint8Array> | null = incoming?.iterator({ destroyOnReturn: false }) ?? request.body;
    try {
      if (body) await write(body);
    } catch (error) {
      if (incoming?.destroyed && !incoming.complete)
        throw new HttpError(400, "incomplete_body", "The request body ended early; nothing was changed.");
      throw error;
    }
    return { file, fields: {} };
  } catch (error) {
    await file.close();
    throw error;
  }
}

const tooLarge = () =>
  new HttpError(
    413,
    "payload_too_large",
    `The file is larger than ${DOCUMENT_LIMITS.csvBytes} bytes; send it in parts.`,
  );

/** A file without a name, which is deleted with its handle, even when the process is killed. */
export async function temporaryFile(app: App): Promise<FileHandle> {
  const path = join(app.config.data_dir, `${PREFIX}${randomUUID()}`);
  try {
    const file = await open(path, "wx+", 0o600);
    await unlink(path);
    return file;
  } catch (error) {
    throw asStorageFull(error);
  }
}

/** Appends to a temporary file. Throws StorageFull before the disk reserve is used. */
export async function append(app: App, file: FileHandle, bytes: Uint8Array): Promise<void> {
  const written = await diskOf(app).admit(bytes.length);
  try {
    await file.writeFile(bytes);
  } catch (error) {
    throw asStorageFull(error);
  } finally {
    written();
  }
}

/** Deletes files whose process was killed between creating and unlinking one. Only while no import runs. */
export async function sweepTemporaryFiles({ config }: App): Promise<void> {
  for (const name of await readdir(config.data_dir))
    if (/^import-[0-9a-f-]{36}$/.test(name)) await rm(join(config.data_dir, name), { force: true });
}

/** A record with its header. `row` counts like a spreadsheet: the header is row 1. */
export type CsvRow = { row: number; cells: Record<string, string> } | { row: number; message: string };

/**
 * Iterates over the rows in chunks of some hundreds. They are parsed on a parser thread, piece by piece, so memory does
 * not grow with the file. Throws 422 `validation_failed` for input that is not UTF-8 or CSV, `document_too_complex`
 * beyond DOCUMENT_LIMITS.
 */
export async function* readRows(app: App, file: FileHandle, options: ParseOptions): AsyncGenerator<CsvRow[]> {
  let header: string[] | undefined;
  let row = 0;
  for await (const records of recordsOf(app, file, options)) {
    const rows: CsvRow[] = [];
    for (const record of records) {
      row++;
      if (!header) {
        header = readHeader(record);
        continue;
      }
      if (record.length === 1 && record[0] === "") continue;
      if (row > DOCUMENT_LIMITS.csvRows + 1) throw tooComplex(`It has over ${DOCUMENT_LIMITS.csvRows} rows.`);
      rows.push(rowOf(row, header, record));
    }
    if (rows.length > 0) yield rows;
  }
  if (!header) unreadable("it is empty");
}

function rowOf(row: number, header: string[], record: string[]): CsvRow {
  if (record.length !== header.length)
    return { row, message: `has ${record.length} cells where the header has ${header.length}` };
  const cells: Record<string, string> = {};
  for (const [column, name] of header.entries()) cells[name] = unescapeCell(record[column] as string);
  return { row, cells };
}

function readHeader(record: string[]): string[] {
  const names = record.map((name) => name.trim().toLowerCase());
  if (!names.includes("original_filename") && !names.includes("relative_path"))
    unreadable("its header has neither original_filename nor relative_path");
  const twice = names.find((name, column) => name !== "" && names.indexOf(name) !== column);
  if (twice !== undefined) unreadable("its header has a column twice");
  return names;
}

async function* recordsOf(app: App, file: FileHandle, options: ParseOptions): AsyncGenerator<string[][]> {
  let length = PIECE_BYTES;
  for (let position = 0; ; ) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafeSlow(length), 0, length, position);
    // A short read means the end of the file.
    const piece = { bytes: buffer.subarray(0, bytesRead), isFirst: position === 0, isLast: bytesRead < length };
    const { records, consumed, unreadable: fault } = await parseDocument(app, "csv", piece, options);
    if (fault !== null) unreadable(fault);
    if (records.length > 0) yield records;
    if (piece.isLast) return;
    position += consumed;
    length = consumed === 0 ? Math.min(length * 2, LARGEST_PIECE) : PIECE_BYTES;
  }
}
