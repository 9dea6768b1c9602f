import type { BatchResult, Step, WireResult, WireStatement } from "./hrana-wire.ts";

/**
 * A server without a response for this long is unavailable. Longer than sqld lets a request wait for its write lock (5
 * s).
 */
export const SILENCE_MS = 30_000;

/**
 * One connection to the database at the server, with its transaction if one has begun. After a DatabaseAway the
 * server's state is unknown, and the stream must not be used again.
 */
export type HranaStream = {
  /** Broken, or not worth keeping: a new one is better. */
  readonly isStale: boolean;
  /** One statement. Throws LibsqlError with SQLite's basic code, or DatabaseAway. */
  execute(stmt: WireStatement): Promise<WireResult>;
  /** Several steps in one request; an error of a step is in its position of the response. Throws DatabaseAway. */
  batch(steps: Step[]): Promise<BatchResult>;
  /** Closes it at the server, which rolls back its transaction, without waiting for the response. */
  close(): void;
};

/** What a stream over HTTP needs from its server. */
export type HranaPost = {
  readonly base: URL;
  /** Whether a WebSocket has become available. */
  readonly hasSocket: boolean;
  post(url: URL, body: string): Promise<unknown>;
};
