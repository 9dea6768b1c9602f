import type { FileHandle } from "node:fs/promises";
import * as v from "valibot";
import type { App } from "#app.ts";
import { AssetId, MessageField, OriginalFilename, ReasonField } from "#protocol/record-fields.ts";
import { append, temporaryFile } from "../csv-file.ts";

const RowField = v.pipe(v.number(), v.description("Row of the file, counted from 1 with the header"));
export const ImportResult = v.object({
  applied: v.pipe(
    v.array(
      v.object({
        row: RowField,
        asset_id: AssetId,
        changed: v.pipe(v.array(v.string()), v.description("Fields that were changed")),
      }),
    ),
    v.description("Rows that were applied"),
  ),
  unmatched: v.pipe(
    v.array(v.object({ row: RowField, original_filename: OriginalFilename, reason: ReasonField })),
    v.description("Rows without a matching asset"),
  ),
  errors: v.pipe(v.array(v.object({ row: RowField, message: MessageField })), v.description("Faults")),
});
type Result = v.InferOutput<typeof ImportResult>;
const SECTIONS = ["applied", "unmatched", "errors"] as const satisfies readonly (keyof Result)[];

/** Characters of a section that are buffered before they are written to its file. */
const BUFFERED = 128 * 1024;
const READ_BYTES = 32 * 1024;

type Section = { text: string; count: number; file: FileHandle | null };

/** The result of an import as JSON. It can be as long as the file, so most of it is on disk. */
export class ResultWriter {
  readonly #app: App;
  readonly #sections: Record<keyof Result, Section>;

  constructor(app: App) {
    this.#app = app;
    const empty = (): Section => ({ text: "", count: 0, file: null });
    this.#sections = { applied: empty(), unmatched: empty(), errors: empty() };
  }

  add<N extends keyof Result>(name: N, entry: Result[N][number]): void {
    const section = this.#sections[name];
    section.text += (section.count++ > 0 ? "," : "") + JSON.stringify(entry);
  }

  /** Throws StorageFull. */
  async flush(): Promise<void> {
    for (const section of Object.values(this.#sections)) {
      if (section.text.length < BUFFERED) continue;
      section.file ??= await temporaryFile(this.#app);
      await append(this.#app, section.file, Buffer.from(section.text));
      section.text = "";
    }
  }

  async *json(): AsyncGenerator<string> {
    for (const [index, name] of SECTIONS.entries()) {
      yield `${index === 0 ? "{" : ","}"${name}":[`;
      const { file, text } = this.#sections[name];
      if (file) yield* textOf(file);
      yield `${text}]`;
    }
    yield "}";
  }

  async close(): Promise<void> {
    for (const section of Object.values(this.#sections)) {
      await section.file?.close();
      section.file = null;
    }
  }
}

async function* textOf(file: FileHandle): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  for (let position = 0; ; ) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(READ_BYTES), 0, READ_BYTES, position);
    if (bytesRead === 0) return;
    position += bytesRead;
    yield decoder.decode(buffer.subarray(0, bytesRead), { stream: true });
  }
}
