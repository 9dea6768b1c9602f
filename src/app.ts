import type { EventEmitter } from "node:events";
import type { Logger } from "pino";
import type { Database, Db } from "../storage/db/open.ts";
import type { Commits } from "../storage/db/remember.ts";
import type { SwitchingStore } from "../storage/objects/switching.ts";
import type { Config } from "./config/load.ts";
import type { SecretName, Secrets } from "./config/secrets.ts";
import type { OpenStore } from "./config/stores.ts";
import type { Clock } from "./lib/clock.ts";
import { oncePer } from "./lib/once-per.ts";

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
  }>;
  /** Aborts when the program stops. */
  readonly stopping: AbortSignal;
  /** A worker that can name it reads the same disk. Written to the data directory, 0600. */
  readonly localProof: string;
};

/** `make` once an App: what belongs to a running program, kept beside the code that uses it. */
export const forApp = <T extends object>(make: (app: App) => T): ((app: App) => T) => oncePer(make);
