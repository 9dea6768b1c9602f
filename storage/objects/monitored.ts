import { UserError } from "#lib/base";
import { InvalidKey } from "./keys.ts";
import {
  NoSuchMultipart,
  ObjectTooLarge,
  OffsetMismatch,
  PartsMismatch,
  StorageFull,
  StorageUnavailable,
} from "./store.ts";

export type StorageFailure = "full" | "unavailable" | "failed";

/** Errors of the caller, or aborts. */
const CALLERS = [InvalidKey, NoSuchMultipart, ObjectTooLarge, OffsetMismatch, PartsMismatch, RangeError];

function failureOf(error: unknown): StorageFailure | null {
  if (error instanceof StorageFull) return "full";
  // The latter is thrown by a check of the whole store.
  if (error instanceof StorageUnavailable || error instanceof UserError) return "unavailable";
  const { name, code } = error as NodeJS.ErrnoException;
  // Other errors come from a body, or from a check that the caller passed.
  return name === "S3Error" || (code !== undefined && /^E[A-Z]+$/.test(code) && code !== "ECONNRESET")
    ? "failed"
    : null;
}

/**
 * Wraps a store: `failed` is called for every operation that storage could not perform; the caller still receives the
 * error.
 */
export function monitored<S extends object>(store: S, failed: (how: StorageFailure) => void): S {
  const look = (error: unknown) => {
    const how = CALLERS.some((kind) => error instanceof kind) ? null : failureOf(error);
    if (how !== null) failed(how);
  };
  return new Proxy(store, {
    get(target, name) {
      const value = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      return (...all: unknown[]) => {
        const answer = value.apply(target, all);
        if (answer instanceof Promise) answer.catch(look);
        return answer;
      };
    },
  });
}
