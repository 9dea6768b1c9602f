import { isAbsolute, resolve } from "node:path";
import * as v from "valibot";
import { withoutTrailing } from "#lib/base";

/** Where a replica is. `prefix` ends with a slash, or is empty. */
export type ReplicaLocation = { kind: "s3"; bucket: string; prefix: string } | { kind: "local"; path: string };

const FORMS = "must be s3://BUCKET/PREFIX or a directory";
const BUCKET = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;
const PREFIX = /^[A-Za-z0-9._-]+(\/[A-Za-z0-9._-]+)*$/;
const MAX_PREFIX = 200;

/** Null when `text` is neither. */
export function replicaLocation(text: string): ReplicaLocation | null {
  if (text === "") return null;
  const [, scheme, rest = ""] = /^([a-z0-9+.-]+):\/\/(.*)$/i.exec(text) ?? [];
  if (scheme === undefined) return { kind: "local", path: isAbsolute(text) ? text : resolve(text) };
  if (scheme.toLowerCase() !== "s3") return null;
  const [bucket = "", ...names] = withoutTrailing(rest, "/").split("/");
  const prefix = names.join("/");
  const isPrefix =
    prefix === "" ||
    (prefix.length <= MAX_PREFIX && PREFIX.test(prefix) && !names.some((name) => /^\.\.?$/.test(name)));
  if (!BUCKET.test(bucket) || !isPrefix) return null;
  return { kind: "s3", bucket, prefix: prefix === "" ? "" : `${prefix}/` };
}

/** `VODBOX_REPLICA`. */
export const ReplicaSetting = v.pipe(
  v.string(FORMS),
  v.trim(),
  v.check((text) => replicaLocation(text) !== null, FORMS),
);
