import type { BatchResult, Step, WireResult, WireStatement } from "./hrana-wire.ts";

/** A server that has been silent for so long is away. Longer than sqld makes anybody wait for its write lock (5 s). */
export const SILENCE_MS = 30_000;

/**
 * One connection to the database at the server, with its transaction if it has begun one. After a DatabaseAway nobody
 * knows what the server did, and the stream is of no more use.
 */
export type HranaStream = {
  /** Broken, or not worth being kept: a new one is better. */
  readonly isStale: boolean;
  /** One statement. Throws LibsqlError with SQLite's basic code, or DatabaseAway. */
  execute(stmt: WireStatement): Promise<WireResult>;
  /** Steps in one go; an error of one is in its place of the answer. Throws DatabaseAway. */
  batch(steps: Step[]): Promise<BatchResult>;
  /** Ends it at the server, which rolls back what it had begun; no answer is waited for. */
  close(): void;
};

/** What a stream over HTTP needs of its server. */
export type HranaPost = {
  readonly base: URL;
  /** Whether there is a WebSocket by now. */
  readonly hasSocket: boolean;
  post(url: URL, body: string): Promise<unknown>;
};
