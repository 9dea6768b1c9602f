import type { AssetRow } from "../../../../storage/db/schema.ts";
import type { App } from "../../../app.ts";
import { registerPending } from "../../../http/object-gc.ts";
import { iso } from "../../../lib/clock.ts";
import { newDeliveredPrefix } from "../../../lib/object-keys.ts";
import type { FinishedRecording } from "../../../live/ingest/messages.ts";
import type { Rendition } from "../../../media/manifests.ts";
import { insertRecorded, storeFile, storeFiles } from "./recorded-asset.ts";
import { finishStream, streamWithChannel } from "./rows.ts";

/** The longest stream lasts a day. Objects of one that is lost with the process are deleted after this. */
const PENDING_MS = 26 * 3_600_000;

/**
 * The objects of a recording. Complete segments are stored while the stream runs, so that little is left at its end,
 * however long it was.
 */
export class StoredRecording {
  readonly #app: App;
  readonly #prefix: string;
  readonly #registered: Promise<unknown>;
  readonly #stored = new Set<string>();
  #last: Promise<unknown> = Promise.resolve();

  constructor(app: App, tenantId: number) {
    this.#app = app;
    this.#prefix = newDeliveredPrefix(tenantId);
    this.#registered = registerPending(app, [this.#prefix], PENDING_MS);
    this.#registered.catch(() => {});
  }

  /** Stores a file of the directory of the stream, one after another. One that fails is stored at the end. */
  add(folder: string, path: string): void {
    this.#last = this.#last
      .then(() => this.#registered)
      .then(() => storeFile(this.#app, { folder, path, prefix: this.#prefix }))
      .then(() => this.#stored.add(path))
      .catch((error) => this.#app.log.warn({ err: error }, "a live segment could not be stored yet"));
  }

  /**
   * Stores what is left of the recording in the directory `folder`, and creates its asset, in the transaction that
   * finishes the stream. Null when the stream was deleted with its channel. Throws the errors of storage.
   */
  async publish(name: string, folder: string, recording: FinishedRecording): Promise<AssetRow | null> {
    await Promise.all([this.#last, this.#registered]);
    // The last segment of a rendition may have been joined with the one before it.
    const changed = new Set([...recording.renditions, ...recording.audioRenditions].flatMap(lastSegment(recording)));
    const left = recording.files.filter((path) => !this.#stored.has(path) || changed.has(path));
    await storeFiles(this.#app, left, { folder, prefix: this.#prefix });
    return this.#app.write(async (tx) => {
      const found = await streamWithChannel(tx, name);
      if (!found || found.stream.finishedAt !== null) return null;
      const { stream, title, playbackPolicy } = found;
      const asset = await insertRecorded(tx, this.#app, {
        ...{ tenantId: stream.tenantId, playbackPolicy, recording, prefix: this.#prefix, mayExceedQuota: true },
        title: `${title}, ${iso(stream.startedAt).slice(0, 16).replace("T", " ")} UTC`,
      });
      await finishStream(tx, this.#app, found, asset.id);
      return asset;
    });
  }
}

const lastSegment =
  ({ files }: FinishedRecording) =>
  ({ name }: Rendition): string[] =>
    files.filter((path) => path.startsWith(`${name}/`) && path.endsWith(".m4s")).slice(-1);
