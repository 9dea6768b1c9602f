import { UserError } from "../../src/lib/errors.ts";
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

/** What a caller did wrong, or called off. */
const CALLERS = [InvalidKey, NoSuchMultipart, ObjectTooLarge, OffsetMismatch, PartsMismatch, RangeError];

function failureOf(error: unknown): StorageFailure | null {
  if (error instanceof StorageFull) return "full";
  // The latter is what a check of the whole store says.
  if (error instanceof StorageUnavailable || error instanceof UserError) return "unavailable";
  const { name, code } = error as NodeJS.ErrnoException;
  // What else is thrown is a body's, or a check's that the caller had asked for.
  return name === "S3Error" || (code !== undefined && /^E[A-Z]+$/.test(code) && code !== "ECONNRESET")
    ? "failed"
    : null;
}

/** The same store, which tells `failed` of every call that storage could not do; the caller hears of it as before. */
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
