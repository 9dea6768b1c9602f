import type { EventEmitter } from "node:events";
import type { Logger } from "pino";
import {
  type AcquireLock,
  type Clock,
  createKeyedLock,
  type MetricFamily,
  memoizeByObject,
  type RecentLines,
} from "#lib/base";
import type { Tracer } from "#lib/tracing";
import type { Config } from "#platform/config/load.ts";
import type { SecretName, Secrets } from "#platform/config/secrets.ts";
import type { OpenStore } from "#platform/config/stores.ts";
import type { SharedCache } from "#storage/cache/shared-cache.ts";
import type { Commits } from "#storage/db/commit-cache.ts";
import type { Database, Db } from "#storage/db/open.ts";
import type { StorageFailure } from "#storage/objects/monitored.ts";
import type { SwitchingStore } from "#storage/objects/switching.ts";

/** The other processes of this server (`serve --processes`). */
export type Peers = {
  /** Index of this process, from 0. */
  readonly slot: number;
  /** True when no peer was running at the start of this process. */
  readonly isFirst: boolean;
  /** A lock shared by all processes of the server. */
  readonly take: AcquireLock;
  /** The counters of all processes, this one included. A process that does not answer is left out. */
  gather(): Promise<{ slot: number; families: MetricFamily[] }[]>;
  /**
   * Makes `value`, which must be JSON, readable by all peers under `name` while this process lives. Resolves when they
   * can read it.
   */
  post(name: string, value: unknown): Promise<void>;
  /** Sends `value`, which must be JSON, to all peers that have subscribed to `topic`, or to one of them. In order. */
  publish(topic: string, value: unknown, to?: number): void;
  /** `receive` is called with what peers publish, and their slots. One subscriber for each topic. */
  subscribe(topic: string, receive: (value: unknown, from: number) => void): void;
  /** The value that a peer last posted; undefined after that peer has exited. */
  posted(name: string): Promise<unknown>;
};

/** The state of a running program. `serve.ts` creates it once and passes it as an argument. */
export type App = {
  readonly config: Config;
  readonly secrets: Secrets;
  /** Reads committed rows. */
  readonly db: Db;
  /** The write queue. When the promise resolves, the transaction is on disk. The work may run twice. */
  readonly write: Database["write"];
  /** Cache of rows that is valid until the next write. */
  readonly commits: Commits;
  readonly writes: Database["writes"];
  /** Null when this process does not replicate its database. */
  readonly replica: { status(): Promise<{ lag_seconds: number; error: string | null }> } | null;
  /** Null when object storage is disabled; `storageOf` answers 503 then. */
  readonly objects: SwitchingStore | null;
  /** Opens any store that the settings describe, to migrate objects between stores. */
  readonly openStore: OpenStore;
  /** In addition to the caches in memory, as `VODBOX_CACHE` says. */
  readonly cache: SharedCache;
  readonly clock: Clock;
  readonly log: Logger;
  /** Null while traces are off. */
  readonly tracer: Tracer | null;
  /** What this process logged last. */
  readonly recentLines: RecentLines;
  /** Base of every absolute URL in a response; known once the socket listens. */
  readonly baseUrl: () => string;
  /** Wakes waiting requests in this process. A hint only: the receiver reads the database again. */
  readonly signals: EventEmitter<{
    /** Captions are there that are to be translated. */
    "captions.recognized": [];
    "job.queued": [];
    "delivery.due": [];
    "webhook.changed": [number];
    "secret.rotated": [SecretName];
    "storage.failed": [StorageFailure];
    "tenant.deleting": [];
    "mail.due": [];
  }>;
  /** Aborts when the program stops. */
  readonly stopping: AbortSignal;
  /** Proves that a worker reads the same disk. Stored in the data directory with mode 0600. */
  readonly localProof: string;
  /** Null when the server is a single process. */
  readonly peers: Peers | null;
};

/** Creates a value once per App, so that state of a running program can be declared next to the code that uses it. */
export const forApp = <T extends object>(make: (app: App) => T): ((app: App) => T) => memoizeByObject(make);

/** Locks in `namespace` by key, across all processes of this server. */
export const lockNamespace = <Key extends string | number>(namespace: string) =>
  forApp((app) => ({ withLock: createKeyedLock<Key>({ take: app.peers?.take, namespace }) }));
