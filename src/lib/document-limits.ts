/**
 * Limits for documents that clients write. Parsers, the threads that run them and docs/api.md take them from here.
 */
export const DOCUMENT_LIMITS = {
  /** Of one document on a parser thread; the time it waits for one is not counted. */
  parseMs: 2000,
  /** V8 heap of a parser thread in MiB. */
  heapMebibytes: 192,
} as const;

/**
 * A document exceeds a limit. `limit` is a sentence that names it. The API answers 422 `document_too_complex`.
 */
export class TooComplex extends Error {
  constructor(limit: string) {
    super(limit);
    this.name = "TooComplex";
  }
}
