import type { EventEmitter } from "node:events";
import type { Logger } from "pino";
import type { Commits } from "../storage/db/commit-cache.ts";
import type { Database, Db } from "../storage/db/open.ts";
import type { StorageFailure } from "../storage/objects/monitored.ts";
import type { SwitchingStore } from "../storage/objects/switching.ts";
import type { Config } from "./config/load.ts";
import type { SecretName, Secrets } from "./config/secrets.ts";
import type { OpenStore } from "./config/stores.ts";
import type { Clock } from "./lib/clock.ts";
import { createKeyedLock } from "./lib/keyed-lock.ts";
import type { AcquireLock } from "./lib/lock-manager.ts";
import { memoizeByObject } from "./lib/memoize-by-object.ts";
import type { MetricFamily } from "./lib/prometheus.ts";

/** The other processes of this server, where it has several (`serve --processes`). */
export type Peers = {
  /** Which of them this one is, from 0. */
  readonly slot: number;
  /** It was started while none of the others ran. */
  readonly isFirst: boolean;
  /** A turn among all of them: what one process alone may do at a time. */
  readonly take: AcquireLock;
  /** What each of them counted, this one among them; without one that does not answer. */
  gather(): Promise<{ slot: number; families: MetricFamily[] }[]>;
  /** Shows `value`, which JSON can hold, to all under `name` for as long as this process lives. Resolves when they can see it. */
  post(name: string, value: unknown): Promise<void>;
  /** What any of them posted last; undefined when that one has gone. */
  posted(name: string): Promise<unknown>;
};

/** What the running program consists of; made once by `serve.ts` and passed as an argument. */
export type App = {
  readonly config: Config;
  readonly secrets: Secrets;
  /** Committed rows, for reading. */
  readonly db: Db;
  /** The write queue: what ran in it is on the disk when the promise resolves. The work may run twice. */
  readonly write: Database["write"];
  /** For what may be remembered until the next change. */
  readonly commits: Commits;
  readonly writes: Database["writes"];
  /** Null when object storage is switched off; `storageOf` answers 503 then. */
  readonly objects: SwitchingStore | null;
  /** Any store that the settings describe, for carrying objects between them. */
  readonly openStore: OpenStore;
  readonly clock: Clock;
  readonly log: Logger;
  /** Base of every absolute address in an answer; known once the socket listens. */
  readonly baseUrl: () => string;
  /** Wakes those who wait inside this process. Only a hint: whoever waits looks into the database again. */
  readonly signals: EventEmitter<{
    "job.queued": [];
    "delivery.due": [];
    "webhook.changed": [number];
    "secret.rotated": [SecretName];
    "storage.failed": [StorageFailure];
  }>;
  /** Aborts when the program stops. */
  readonly stopping: AbortSignal;
  /** A worker that can name it reads the same disk. Written to the data directory, 0600. */
  readonly localProof: string;
  /** Null where this process is the whole server. */
  readonly peers: Peers | null;
};

/** `make` once an App: what belongs to a running program, kept beside the code that uses it. */
export const forApp = <T extends object>(make: (app: App) => T): ((app: App) => T) => memoizeByObject(make);

/** Locks in `namespace` by key, across all processes of this server. */
export const lockNamespace = <Key extends string | number>(namespace: string) =>
  forApp((app) => ({ inTurn: createKeyedLock<Key>({ take: app.peers?.take, namespace }) }));
