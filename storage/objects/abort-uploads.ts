import type { ObjectStore } from "./store.ts";

/**
 * Ends all uploads in progress of keys under `prefix`: their writers stop, and what they have stored is deleted. Storage
 * errors are thrown.
 */
export async function abortUploadsUnder(
  objects: Pick<ObjectStore, "listMultiparts" | "abortMultipart" | "appends">,
  prefix: string,
): Promise<void> {
  for await (const { key, uploadId } of objects.listMultiparts(prefix)) {
    await objects.appends?.discard(key);
    await objects.abortMultipart(key, uploadId);
  }
}
