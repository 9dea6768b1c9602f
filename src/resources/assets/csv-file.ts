import { randomUUID } from "node:crypto";
import { type FileHandle, open, unlink } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { StorageFull } from "../../../storage/objects/store.ts";
import type { App } from "../../app.ts";
import { isForm, streamForm } from "../../http/form.ts";
import type { Context } from "../../http/route.ts";
import { HttpError } from "../../lib/errors.ts";
import { pacer } from "../../lib/pace.ts";
import { unescapeCell } from "./csv-cells.ts";

const MAX_BYTES = 256 * 2 ** 20;
const MAX_ROWS = 500_000;
/** An unclosed quote must not gather the rest of the file. */
const MAX_RECORD = 1 << 20;
/** Parsed at once; about a millisecond. */
const CHUNK_BYTES = 32 * 1024;

const unreadable = (why: string): never => {
  throw new HttpError(422, "validation_failed", `The file cannot be read: ${why}.`, { details: { file: [why] } });
};

export type Spooled = { file: FileHandle; fields: Record<string, string> };

/** The CSV of a request, as a form's `file` or as the body, in a file that is gone with its handle. 413, 415, 422. */
export async function spool(app: App, { request, incoming }: Pick<Context, "request" | "incoming">): Promise<Spooled> {
  const path = join(app.config.data_dir, `import-${randomUUID()}`);
  const file = await open(path, "wx+", 0o600);
  try {
    // It has no name from here on, so that a crash leaves nothing behind.
    await unlink(path);
    const write = async (body: AsyncIterable<Uint8Array>) => {
      let bytes = 0;
      for await (const chunk of body) {
        bytes += chunk.length;
        if (bytes > MAX_BYTES)
          throw new HttpError(413, "payload_too_large", `The file is larger than ${MAX_BYTES} bytes.`);
        await file.writeFile(chunk);
      }
      return true;
    };
    if (isForm(request.headers)) {
      const onFile = ({ body }: { body: AsyncIterable<Uint8Array> }) => write(body);
      const form = await streamForm({ request, incoming }, { maxFileBytes: MAX_BYTES, onFile });
      if (!form.file)
        throw new HttpError(422, "parameter_missing", "file: is required", { details: { file: ["is required"] } });
      return { file, fields: form.fields };
    }
    if (!/^(text|application)\/csv\b/i.test(request.headers.get("content-type") ?? ""))
      throw new HttpError(415, "unsupported_media_type", "Send text/csv, or a form with a file.");
    const body: AsyncIterable<Uint8Array> | null = incoming?.iterator({ destroyOnReturn: false }) ?? request.body;
    try {
      if (body) await write(body);
    } catch (error) {
      if (incoming?.destroyed && !incoming.complete)
        throw new HttpError(400, "incomplete_body", "The body ended early; nothing was done.");
      throw error;
    }
    return { file, fields: {} };
  } catch (error) {
    await file.close();
    if ((error as NodeJS.ErrnoException).code === "ENOSPC") throw new StorageFull({ cause: error });
    throw error;
  }
}

/** A record under its header. `row` counts as a spreadsheet does: the header is row 1. */
export type CsvRow = { row: number; cells: Record<string, string> } | { row: number; message: string };

/** From the beginning, as often as it is called; lets the event loop turn. 422 for what is no UTF-8 or no CSV. */
export async function* readRows(file: FileHandle): AsyncGenerator<CsvRow> {
  const pace = pacer();
  let header: string[] | undefined;
  let row = 0;
  for await (const record of recordsOf(file)) {
    row++;
    await pace();
    if (!header) {
      header = readHeader(record);
      continue;
    }
    if (record.length === 1 && record[0] === "") continue;
    if (row > MAX_ROWS + 1) unreadable(`it has more than ${MAX_ROWS} rows`);
    if (record.length !== header.length)
      yield { row, message: `has ${record.length} cells where the header has ${header.length}` };
    else {
      const cells = record.map((cell, column) => [header?.[column] as string, unescapeCell(cell)]);
      yield { row, cells: Object.fromEntries(cells) };
    }
  }
  if (!header) unreadable("it is empty");
}

function readHeader(record: string[]): string[] {
  const names = record.map((name) => name.trim().toLowerCase());
  if (!names.includes("original_filename") && !names.includes("relative_path"))
    unreadable("its header has neither original_filename nor relative_path");
  const twice = names.find((name, column) => name !== "" && names.indexOf(name) !== column);
  if (twice !== undefined) unreadable("its header has a column twice");
  return names;
}

async function* recordsOf(file: FileHandle): AsyncGenerator<string[]> {
  // As large as a sixth of all that a start loads, and wanted now and then.
  const { CsvError, parse } = await import("csv-parse");
  const parser = parse({ bom: true, relax_column_count: true, max_record_size: MAX_RECORD });
  const reading = pipeline(utf8Of(file), parser);
  // Told by the parser's own end, which is what is waited for.
  reading.catch(() => {});
  try {
    yield* parser as AsyncIterable<string[]>;
  } catch (error) {
    if (error instanceof CsvError) unreadable(`it is no valid CSV at line ${error.lines ?? "?"}`);
    throw error;
  }
}

/** Not a stream of the handle's own, which would close it when it ends. */
async function* utf8Of(file: FileHandle): AsyncGenerator<Uint8Array> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  for (let position = 0; ; ) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(CHUNK_BYTES), 0, CHUNK_BYTES, position);
    const chunk = buffer.subarray(0, bytesRead);
    position += bytesRead;
    try {
      decoder.decode(chunk, { stream: bytesRead > 0 });
    } catch {
      unreadable("it is not UTF-8");
    }
    if (bytesRead === 0) return;
    yield chunk;
  }
}
