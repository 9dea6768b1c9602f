import type { Hash } from "node:crypto";
import type { Readable } from "node:stream";

/** Where an object stands and what it is. `etag` is quoted, as in HTTP. */
export type ObjectInfo = { key: string; bytes: number; etag: string; modifiedAt: Date };

/** Inclusive byte positions, as in HTTP's Range (RFC 9110, 14.1.2). */
export type ByteRange = { start: number; end: number };

/** An address that does one thing for a while, with the headers that must go with it. */
export type SignedRequest = { url: string; method: "PUT" | "GET"; headers: Record<string, string>; expiresAt: Date };

export type PutOptions = {
  /** More bytes than this: nothing is kept and `ObjectTooLarge` is thrown. */
  maxBytes?: number;
  /** The announced length: a disk that has no room for so many refuses it before the first byte. */
  bytes?: number | undefined;
  contentType?: string;
  signal?: AbortSignal;
  /** Asked when all bytes are there and before they take their place: what it throws keeps them out. */
  confirm?: () => Promise<void>;
};

/** A part that is held whole. `partNumber` counts from 1; `etag` is quoted. */
export type Part = { partNumber: number; bytes: number; etag: string };
export type NamedPart = Pick<Part, "partNumber" | "etag">;
export type Multipart = { key: string; uploadId: string; startedAt: Date };

export type CreateMultipartOptions = {
  contentType?: string;
  /** Of the whole object, at most. */
  bytes: number;
  /** Of every part but the last. */
  partSize: number;
};
export type SignPartOptions = { expiresAt: Date; maxBytes: number };
export type PutPartOptions = {
  maxBytes: number;
  /** Its exact length, where that is known: without it S3 needs the part in memory. */
  bytes?: number | undefined;
  signal?: AbortSignal | undefined;
};

export type SignPutOptions = { expiresAt: Date; maxBytes: number; contentType?: string };
export type SignGetOptions = { expiresAt: Date; filename?: string; contentType?: string };
export type ListPage = { objects: ObjectInfo[]; cursor: string | null };

/** One thing that was looked at; `detail` says what is wrong and what to do. */
export type StorageFinding = { check: string; ok: boolean; detail: string };

export type AppendOptions = {
  /** Where the body begins: at most what is held. */
  offset: number;
  maxBytes: number;
  /** The announced length of the body, as in PutOptions. */
  bytes?: number | undefined;
  /** Fed with the body. */
  hash?: Hash;
  /** Asked when the whole body is there. With it a body counts whole or not at all: torn, or refused by what this throws, it is taken away again. */
  check?: () => void;
};

/**
 * An object that grows at its end until it is finished. Of two that write to one at once the later one wins. What a torn
 * body brought stays; so does all of an unfinished object, until it is discarded or its key deleted.
 */
export interface Appends {
  /** Bytes held from the first on; null where nothing was begun. While one is writing that is still growing. */
  held(key: string): Promise<number | null>;
  /** The same for who goes on from there: ends whoever still writes, so it stays true, and is durable. */
  settled(key: string): Promise<number | null>;
  /** Writes `body`, over what is held from `offset` on; answers what is held then. Throws OffsetMismatch, StorageFull. */
  append(key: string, body: Readable, options: AppendOptions): Promise<number>;
  /** Makes the object of the first `bytes`. Throws OffsetMismatch where there are fewer, NoSuchMultipart where none. */
  finish(key: string, bytes: number, options?: Pick<PutOptions, "confirm">): Promise<ObjectInfo>;
  discard(key: string): Promise<void>;
  /** Discards what nobody wants any more, and what a crash left of none. Answers how many there were. */
  sweep(isWanted: (key: string) => Promise<boolean>): Promise<number>;
}

/**
 * Bytes under keys. Keys are `/`-separated, relative, free of `.` and `..` segments (`keys.ts` says the rules).
 * An object is there whole or not at all: a put that fails, or dies with the process, leaves what was there before.
 */
export interface ObjectStore {
  readonly kind: "local" | "s3";
  /** Of the addresses that `sign…` gives, where these are not our own server's. */
  readonly addressOrigin: string | null;
  /** Null where storage cannot append. */
  readonly appends: Appends | null;
  /** Streams `body` to `key`; durable when the promise resolves. Throws ObjectTooLarge, StorageFull. */
  put(key: string, body: Readable | Uint8Array, options?: PutOptions): Promise<ObjectInfo>;
  /** Null when there is no such object. The stream ends early with an error if the object is torn. */
  get(key: string, range?: ByteRange): Promise<{ info: ObjectInfo; body: Readable } | null>;
  head(key: string): Promise<ObjectInfo | null>;
  /** Objects under `prefix` in key order (by UTF-8 bytes), a page at a time. */
  list(prefix: string, options?: { limit?: number; cursor?: string }): Promise<ListPage>;
  /** Deleting what is not there is no error. */
  delete(key: string): Promise<void>;
  copy(from: string, to: string): Promise<ObjectInfo>;
  signPut(key: string, options: SignPutOptions): Promise<SignedRequest>;
  signGet(key: string, options: SignGetOptions): Promise<SignedRequest>;
  /**
   * Begins an object that arrives in parts. Parts come in any order, at once and repeatedly; each but the last has
   * `partSize` bytes, and what is never completed or aborted stays until it is swept.
   */
  createMultipart(key: string, options: CreateMultipartOptions): Promise<string>;
  /** An address to PUT one part to; the answer's ETag is the part's. Throws NoSuchMultipart where that can be told. */
  signPart(key: string, uploadId: string, partNumber: number, options: SignPartOptions): Promise<SignedRequest>;
  /** Streams one part. Throws NoSuchMultipart, ObjectTooLarge, StorageFull. */
  putPart(key: string, uploadId: string, partNumber: number, body: Readable, options: PutPartOptions): Promise<Part>;
  /** The parts that are held whole, by number. Throws NoSuchMultipart. */
  listParts(key: string, uploadId: string): Promise<Part[]>;
  /**
   * Makes the object of `parts`, which are numbered from 1 without a gap. Throws PartsMismatch and changes nothing when
   * one is missing, has another ETag or a wrong size; NoSuchMultipart when it is over: after a crash that may mean that
   * it was completed, which `head` tells.
   */
  completeMultipart(key: string, uploadId: string, parts: readonly NamedPart[]): Promise<ObjectInfo>;
  /** Removes all parts. May be repeated. */
  abortMultipart(key: string, uploadId: string): Promise<void>;
  /** Those that are under way, of keys under `prefix`. */
  listMultiparts(prefix: string): AsyncIterable<Multipart>;
  /** The file behind `key` where the store is on this machine's disk, else null. It need not exist. */
  localPath(key: string): string | null;
  /** Throws a UserError that says what is wrong when the store cannot be used. */
  check(): Promise<void>;
  /** The time of the server behind it, to the second; null where there is none, or it tells none. */
  serverTime(): Promise<Date | null>;
  /** Everything that an operator can get wrong, looked at one by one. `origin` is that of our own pages. */
  examine(options: { origin: string; now: Date }): Promise<StorageFinding[]>;
}

/** Parts of one object, at most (Amazon S3, "Multipart upload limits"). */
export const MAX_PARTS = 10_000;

export class ObjectTooLarge extends Error {
  readonly maxBytes: number;
  constructor(maxBytes: number) {
    super(`The object is larger than the ${maxBytes} bytes that were agreed.`);
    this.name = "ObjectTooLarge";
    this.maxBytes = maxBytes;
  }
}

export class StorageFull extends Error {
  constructor(options?: ErrorOptions) {
    super("Storage is full.", options);
    this.name = "StorageFull";
  }
}

/** The multipart upload was completed or aborted, or never was. */
export class NoSuchMultipart extends Error {
  constructor() {
    super("There is no such multipart upload: it was completed or aborted.");
    this.name = "NoSuchMultipart";
  }
}

/** The parts named do not make the object; the message says which one and why, in words for the client. */
export class PartsMismatch extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "PartsMismatch";
  }
}

/** The body does not begin where it could be appended. */
export class OffsetMismatch extends Error {
  readonly held: number;
  constructor(held: number) {
    super(`${held} bytes are held.`);
    this.name = "OffsetMismatch";
    this.held = held;
  }
}

/** Storage does not answer, or asks to be left alone for a while: the same may work later. */
export class StorageUnavailable extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "StorageUnavailable";
  }
}
