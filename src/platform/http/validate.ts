import * as v from "valibot";
import { HttpError, notFound } from "#lib/base";
import { longArray, type SchemaNode } from "./long-arrays.ts";

type Schema = v.GenericSchema<unknown, unknown>;

/** A document with more values than this gets its first fault only. */
const MANY_VALUES = 1000;

/** Whether a document has more than MANY_VALUES values, in any depth. Stops counting there. */
export function hasManyValues(value: unknown): boolean {
  const open = [value];
  for (let seen = 1; open.length > 0; ) {
    const one = open.pop();
    if (typeof one !== "object" || one === null) continue;
    for (const name in one) {
      if (++seen > MANY_VALUES) return true;
      open.push((one as Record<string, unknown>)[name]);
    }
  }
  return false;
}

/**
 * The output of `schema` for `value`. Throws 422 with all faults, or with the first one when `value` has many values; 404 for
 * params. `{}` replaces a missing body, so that the error names the missing fields.
 */
export function validate<S extends Schema>(
  schema: S,
  value: unknown,
  where: "body" | "query" | "params",
): v.InferOutput<S> {
  const misplaced = where === "body" ? misplacedArray(schema as SchemaNode, value) : null;
  if (misplaced) {
    const code = misplaced.optional ? "validation_failed" : "parameter_missing";
    const field = misplaced.path || where;
    throw new HttpError(422, code, `${field}: must be an object`, { details: { [field]: ["must be an object"] } });
  }
  const long = hasManyValues(value) ? longArray(schema, value) : null;
  if (long) {
    const field = long.path.join(".") || where;
    throw new HttpError(422, "validation_failed", `${field}: ${long.message}`, {
      details: { [field]: [long.message] },
    });
  }
  // An issue costs some microseconds, so a MiB of invalid values would occupy the event loop for seconds.
  const parsed = v.safeParse(schema, value, { abortEarly: hasManyValues(value) });
  if (parsed.success) return parsed.output;
  // An id that is not an integer identifies nothing.
  if (where === "params") return notFound();
  // Names come from the client: `constructor` and `__proto__` are names like any other.
  const details: Record<string, string[]> = Object.create(null);
  let missing = false;
  let specific: string | undefined;
  for (const issue of parsed.issues) {
    const field = v.getDotPath(issue) ?? where;
    const message = issue.input === undefined ? "is required" : messageOf(issue);
    details[field] = [...new Set([...(details[field] ?? []), message])];
    const own = errorCodeOf(schema as SchemaNode, issue);
    specific ??= own;
    missing ||= own === undefined && isMissing(schema as SchemaNode, issue);
  }
  const [field = where, messages = []] = Object.entries(details)[0] ?? [];
  const code = missing ? "parameter_missing" : (specific ?? "validation_failed");
  throw new HttpError(422, code, `${field}: ${messages[0] ?? "is invalid"}`, { details });
}

/** A message for a check that has none: the library's contains the whole input. */
function messageOf({ kind, message, expected, received }: v.BaseIssue<unknown>): string {
  if (!message.endsWith(`eceived ${received}`)) return message;
  if (expected === null) return "is invalid";
  if (kind === "schema") return `must be of the type ${expected}`;
  const limit = expected.replace(/^>=/, "at least ").replace(/^<=/, "at most ");
  return `must ${/^Invalid (length|size|entries)/.test(message) ? "have a length of" : "be"} ${limit}`;
}

/**
 * A required field that is absent or of the wrong type is `parameter_missing`; every other fault is
 * `validation_failed`. A string that is not in a picklist has the right type and the wrong value.
 */
function isMissing(schema: SchemaNode, issue: v.BaseIssue<unknown>): boolean {
  if (issue.kind !== "schema") return false;
  if (issue.input === undefined) return true;
  if ((issue.type === "picklist" || issue.type === "literal") && typeof issue.input === "string") return false;
  let node: SchemaNode | undefined = schema;
  for (const item of issue.path ?? []) {
    node = unwrap(node);
    // Keys of a map are not declared, so none can be required.
    if (node?.type === "record") return false;
    node = node?.entries ? node.entries[String(item.key)] : node?.item;
    if (node && isOptional(node)) return false;
  }
  return true;
}

/** The error code of the field with the issue, if its schema names one in `v.metadata({ errorCode })`. */
function errorCodeOf(schema: SchemaNode, issue: v.BaseIssue<unknown>): string | undefined {
  let node: SchemaNode | undefined = schema;
  for (const item of issue.path ?? []) {
    node = unwrap(node)?.entries?.[String(item.key)];
    for (let layer = node; layer; layer = layer.wrapped) {
      const code = layer.pipe?.find((each) => each.metadata?.errorCode)?.metadata?.errorCode;
      if (code) return code;
    }
  }
  return undefined;
}

/** valibot accepts an array as an object without required fields. */
function misplacedArray(
  schema: SchemaNode,
  value: unknown,
  path = "",
  optional = false,
): { path: string; optional: boolean } | null {
  const node = unwrap(schema);
  if (Array.isArray(value)) return node?.entries || node?.type === "record" ? { path, optional } : null;
  if (!node?.entries || typeof value !== "object" || value === null) return null;
  for (const [key, entry] of Object.entries(node.entries)) {
    const below = path === "" ? key : `${path}.${key}`;
    const nested = misplacedArray(entry, (value as Record<string, unknown>)[key], below, isOptional(entry));
    if (nested) return nested;
  }
  return null;
}

const isOptional = (node: SchemaNode) =>
  ["optional", "nullish", "exact_optional", "undefinedable"].includes(node.type ?? "");
/** The schema that describes the shape: the last one of a pipe, which the earlier ones only guard. */
function unwrap(node: SchemaNode | undefined): SchemaNode | undefined {
  let inner = node;
  while (inner?.wrapped || (inner?.pipe && !inner.entries)) {
    const next: SchemaNode | undefined = inner.wrapped ?? inner.pipe?.findLast((each) => each.kind === "schema");
    if (!next || next === inner) break;
    inner = next;
  }
  return inner;
}
