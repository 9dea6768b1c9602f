import { join } from "node:path";
import type { App } from "#app.ts";
import { joinedPart } from "#features/transcoding/joined-part.ts";
import { queueJob } from "#features/transcoding/lifecycle/queue.ts";
import { HttpError, iso, sleep } from "#lib/base";
import type { FinishedRecording } from "#live/ingest/messages.ts";
import { RENDITIONS_FOLDER } from "#live/renditions/messages.ts";
import type { Rendition } from "#media/manifests/renditions.ts";
import { newDeliveredPrefix, newSourceKey } from "#model/object-keys.ts";
import { registerPending } from "#platform/http/object-gc.ts";
import { storageOf } from "#platform/http/storage.ts";
import type { Db } from "#storage/db/open.ts";
import type { AssetRow, LiveStreamRow } from "#storage/db/schema.ts";
import { renditionsPrefix, serverIdOf } from "../shared/server.ts";
import { insertRecorded, storeCaptions, storeFile, storeFiles } from "./recorded-asset.ts";
import { finishStream, streamWithChannel } from "./rows.ts";

/** The longest stream lasts a day. Objects of one that is lost with the process are deleted after this. */
const PENDING_MS = 26 * 3_600_000;
/** Other servers wait for each segment, so one that fails is stored again before the next. */
const RETRY_MS = 1000;

/**
 * The objects of a recording. Complete segments are stored while the stream runs, so that little is left at its end,
 * however long it was.
 */
export class StoredRecording {
  readonly #app: App;
  readonly #tenantId: number;
  /** The prefix of its objects. */
  readonly prefix: string;
  /** Another server has begun it. */
  readonly isAdopted: boolean;
  readonly #registered: Promise<unknown>;
  readonly #stored: Set<string>;
  #last = Promise.resolve();
  #renditionsRegistered: Promise<unknown> | null = null;
  #lastRendition = Promise.resolve();

  /** `begun`: what another server has stored of it. */
  constructor(app: App, tenantId: number, begun?: { prefix: string; stored: Iterable<string> }) {
    this.#app = app;
    this.#tenantId = tenantId;
    this.prefix = begun?.prefix ?? newDeliveredPrefix(tenantId);
    this.#stored = new Set(begun?.stored);
    this.isAdopted = begun !== undefined;
    this.#registered = begun ? Promise.resolve() : registerPending(app, [this.prefix], PENDING_MS);
    this.#registered.catch(() => {});
  }

  /**
   * Stores a file of the directory of the stream, one after another. One that fails repeatedly is stored at the end.
   * Resolves when the file is stored, or has failed.
   */
  add(folder: string, path: string): Promise<void> {
    this.#last = this.#storeAfter(this.#last, async () => {
      await this.#registered;
      await storeFile(this.#app, { folder, path, prefix: this.prefix });
      this.#stored.add(path);
    });
    return this.#last;
  }

  /**
   * Stores a file of a rendition in the same way, for the other servers. The recording does not have it: it is deleted after
   * the stream.
   */
  addRendition(folder: string, path: string): Promise<void> {
    const prefix = renditionsPrefix(this.prefix);
    this.#renditionsRegistered ??= registerPending(this.#app, [prefix], PENDING_MS);
    const registered = this.#renditionsRegistered;
    registered.catch(() => {});
    this.#lastRendition = this.#storeAfter(this.#lastRendition, async () => {
      await registered;
      await storeFile(this.#app, { folder: join(folder, RENDITIONS_FOLDER), path, prefix });
    });
    return this.#lastRendition;
  }

  #storeAfter(last: Promise<void>, store: () => Promise<void>): Promise<void> {
    return last
      .then(() => store().catch(() => sleep(RETRY_MS, undefined, { ref: false }).then(store)))
      .catch((error) => this.#app.log.warn({ err: error }, "a live segment could not be stored yet"));
  }

  /**
   * Stores what is left of the recording in the directory `folder`, and creates its asset, in the transaction that
   * finishes the stream. Null when the stream was deleted with its channel, or another server completes it. Throws the
   * errors of storage.
   */
  async publish(name: string, folder: string, recording: FinishedRecording): Promise<AssetRow | null> {
    await Promise.all([this.#last, this.#registered]);
    const isOurs = (found: Awaited<ReturnType<typeof streamWithChannel>>) =>
      found?.stream.finishedAt === null && found.stream.server === serverIdOf(this.#app);
    // The other server may have these objects in an asset already.
    const started = await streamWithChannel(this.#app.db, name);
    if (!started || !isOurs(started)) return null;
    // The last segment of a rendition may have been joined with the one before it.
    const changed = new Set([...recording.renditions, ...recording.audioRenditions].flatMap(lastSegment(recording)));
    const left = recording.files.filter((path) => !this.#stored.has(path) || changed.has(path));
    await storeFiles(this.#app, left, { folder, prefix: this.prefix });
    const sourceKey =
      recording.source && (await storeSource(this.#app, this.#tenantId, join(folder, recording.source.path)));
    const captions = await storeCaptions(this.#app, this.prefix, recording, started.stream.captions);
    return this.#app.write(async (tx) => {
      const found = await streamWithChannel(tx, name);
      if (!found || !isOurs(found)) return null;
      const { stream, title, playbackPolicy, encodingProfile } = found;
      const asset = await insertRecorded(tx, this.#app, {
        tenantId: stream.tenantId,
        playbackPolicy,
        recording,
        prefix: this.prefix,
        mayExceedQuota: true,
        sourceKey,
        encodingProfile,
        captions,
        title: `${title}, ${iso(stream.startedAt).slice(0, 16).replace("T", " ")} UTC`,
      });
      await finishStream(tx, this.#app, found, asset.id);
      await queueWork(tx, this.#app, asset, stream);
      return asset;
    });
  }
}

async function storeSource(app: App, tenantId: number, file: string): Promise<string> {
  const key = newSourceKey(tenantId, file);
  await registerPending(app, [key]);
  await storageOf(app).putFile(key, file);
  return key;
}

/**
 * Queues the encode that the channel wants, or else a job for the storyboard and the captions: one that joins the media of
 * several assets, of which there is one, and encodes nothing. The asset plays meanwhile, and stays as it is if the job fails.
 */
async function queueWork(
  tx: Db,
  app: App,
  asset: AssetRow,
  { captions }: Pick<LiveStreamRow, "captions">,
): Promise<void> {
  const options = { silently: true, wasPublished: true };
  const isJoined = asset.width !== null || captions.length > 0;
  try {
    if (asset.sourceKey !== "") await queueJob(tx, app, asset, options);
    else if (isJoined) await queueJob(tx, app, asset, { ...options, joined: [joinedPart(asset)] });
  } catch (error) {
    // The plan's minutes are used up; the recording does not depend on them.
    if (!(error instanceof HttpError)) throw error;
  }
}

const lastSegment =
  ({ files }: FinishedRecording) =>
  ({ name }: Rendition): string[] =>
    files.filter((path) => path.startsWith(`${name}/`) && path.endsWith(".m4s")).slice(-1);
