import { join } from "node:path";
import type { AssetRow } from "../../../../storage/db/schema.ts";
import type { ObjectStore } from "../../../../storage/objects/store.ts";
import type { App } from "../../../app.ts";
import { markReferenced, registerPending } from "../../../http/object-gc.ts";
import { storageOf } from "../../../http/storage.ts";
import { mapBounded } from "../../../lib/bounded.ts";
import { iso } from "../../../lib/clock.ts";
import { contentTypeOf } from "../../../lib/media-types.ts";
import { newDeliveredPrefix } from "../../../lib/object-keys.ts";
import { newExternalId } from "../../../lib/tokens.ts";
import type { FinishedRecording } from "../../../live/ingest/messages.ts";
import type { Rendition } from "../../../media/manifests.ts";
import { insertAsset } from "../../assets/stored-bytes.ts";
import { emitAssetReady } from "../../jobs/lifecycle/events.ts";
import { finishStream, streamWithChannel } from "./rows.ts";

const AT_ONCE = 8;
/** The longest stream lasts a day. Objects of one that is lost with the process are deleted after this. */
const PENDING_MS = 26 * 3_600_000;

/**
 * The objects of a recording. Complete segments are stored while the stream runs, so that little is left at its end,
 * however long it was.
 */
export class StoredRecording {
  readonly #app: App;
  readonly #objects: ObjectStore;
  readonly #prefix: string;
  readonly #registered: Promise<unknown>;
  readonly #stored = new Set<string>();
  #last: Promise<unknown> = Promise.resolve();

  constructor(app: App, tenantId: number) {
    this.#app = app;
    this.#objects = storageOf(app);
    this.#prefix = newDeliveredPrefix(tenantId);
    this.#registered = registerPending(app, [this.#prefix], PENDING_MS);
    this.#registered.catch(() => {});
  }

  /** Stores a file of the directory of the stream, one after another. One that fails is stored at the end. */
  add(folder: string, path: string): void {
    this.#last = this.#last
      .then(() => this.#put(join(folder, path), path))
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
    const changed = new Set([...recording.renditions, ...recording.audioRenditions].flatMap(lastSegments(recording)));
    const left = recording.files.filter((path) => !this.#stored.has(path) || changed.has(path));
    await mapBounded(left, { atOnce: AT_ONCE }, (path) => this.#put(join(folder, path), path));
    return this.#app.write(async (tx) => {
      const found = await streamWithChannel(tx, name);
      if (!found || found.stream.finishedAt !== null) return null;
      await markReferenced(tx, this.#prefix);
      const asset = await insertAsset(tx, this.#app, assetOf(this.#app, { ...found, recording, prefix: this.#prefix }));
      await emitAssetReady(tx, this.#app, asset);
      await finishStream(tx, this.#app, found, asset.id);
      return asset;
    });
  }

  async #put(file: string, path: string): Promise<void> {
    await this.#registered;
    await this.#objects.putFile(this.#prefix + path, file, { contentType: contentTypeOf(path) });
  }
}

const lastSegments =
  ({ files }: FinishedRecording) =>
  ({ name }: Rendition): string[] =>
    files.filter((path) => path.startsWith(`${name}/`) && path.endsWith(".m4s")).slice(-1);

type Found = NonNullable<Awaited<ReturnType<typeof streamWithChannel>>>;

function assetOf(
  app: App,
  { stream, title, playbackPolicy, recording, prefix }: Found & { recording: FinishedRecording; prefix: string },
) {
  const now = app.clock.now();
  const below = (one: Rendition) => ({ ...one, playlist_path: prefix + one.playlist_path });
  return {
    tenantId: stream.tenantId,
    externalId: newExternalId(),
    title: `${title}, ${iso(stream.startedAt).slice(0, 16).replace("T", " ")} UTC`,
    inputStatus: "uploaded" as const,
    playbackStatus: "ready" as const,
    playbackPolicy,
    storageBytes: recording.bytes,
    durationSeconds: recording.durationSeconds,
    // It has no source.
    sourceKey: "",
    sourceDeletedAt: now,
    mediaPrefix: prefix,
    manifestPath: prefix + recording.manifest,
    dashManifestPath: prefix + recording.dashManifest,
    renditions: recording.renditions.map(below),
    audioRenditions: recording.audioRenditions.map(below),
    width: recording.width,
    height: recording.height,
    frameRate: recording.frameRate,
    progress: 100,
    readyAt: now,
  };
}
