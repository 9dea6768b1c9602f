import { createHash } from "node:crypto";

export const sha256 = (bytes: Uint8Array | string) => createHash("sha256").update(bytes).digest("hex");

export type Upload = {
  /** The Idempotency-Key of the initiate request, and the title of its asset. */
  name: string;
  bytes: Uint8Array<ArrayBuffer>;
  sha256: string;
  id?: number;
  assetId?: number;
  url?: string;
  headers?: Record<string, string>;
  put?: boolean;
  jobId?: number;
};
export type Key = { id: number; token: string; revoked: "no" | "asked" | "yes" };
/** A leased job. It continues after a restart, as with a real worker. */
export type Work = { claimKey: string; contract?: any; paths?: Record<string, unknown> };

/** What the server has acknowledged: only responses below 300 are recorded. */
export class Ledger {
  readonly uploads: Upload[] = [];
  readonly keys: Key[] = [];
  readonly completedJobs = new Map<number, number>();
  acknowledged = 0;
  readonly #waiting: { count: number; resolve: () => void }[] = [];

  acknowledge(): void {
    this.acknowledged++;
    for (const one of this.#waiting) if (this.acknowledged >= one.count) one.resolve();
  }

  /** Resolves at the `more`-th acknowledgement from now. */
  after(more: number): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push({ count: this.acknowledged + more, resolve });
    return promise;
  }

  ofAsset = (assetId: number) => this.uploads.find((upload) => upload.assetId === assetId);
}
