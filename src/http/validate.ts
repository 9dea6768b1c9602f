import * as v from "valibot";
import { HttpError, notFound } from "../lib/errors.ts";

type Schema = v.GenericSchema<unknown, unknown>;
type Node = { type?: string; entries?: Record<string, Node>; wrapped?: Node; pipe?: Node[]; item?: Node };

/** `{}` stands in for a body that was not sent, so that its missing fields are what is told. */
export function validate<S extends Schema>(
  schema: S,
  value: unknown,
  where: "body" | "query" | "params",
): v.InferOutput<S> {
  // To valibot an array is an object too, and with nothing required an acceptable one.
  if (where === "body" && Array.isArray(value) && unwrap(schema as Node)?.type !== "array")
    throw new HttpError(422, "parameter_missing", "body: must be a JSON object", {
      details: { body: ["must be a JSON object"] },
    });
  const parsed = v.safeParse(schema, value);
  if (parsed.success) return parsed.output;
  // An id that is no integer names nothing.
  if (where === "params") return notFound();
  const details: Record<string, string[]> = {};
  let missing = false;
  for (const issue of parsed.issues) {
    const field = v.getDotPath(issue) ?? where;
    const message = issue.input === undefined ? "is required" : issue.message;
    details[field] = [...(details[field] ?? []), message];
    missing ||= isMissing(schema as Node, issue);
  }
  const [field = where, messages = []] = Object.entries(details)[0] ?? [];
  const code = missing ? "parameter_missing" : "validation_failed";
  throw new HttpError(422, code, `${field}: ${messages[0] ?? "is not acceptable"}`, { details });
}

/**
 * A required field that is absent or of the wrong type is `parameter_missing`; all else that does not fit is
 * `validation_failed`. A picklist that got some other string has the right type and the wrong value.
 */
function isMissing(schema: Node, issue: v.BaseIssue<unknown>): boolean {
  if (issue.kind !== "schema") return false;
  if (issue.input === undefined) return true;
  if ((issue.type === "picklist" || issue.type === "literal") && typeof issue.input === "string") return false;
  let node: Node | undefined = schema;
  for (const item of issue.path ?? []) {
    node = unwrap(node);
    node = node?.entries ? node.entries[String(item.key)] : node?.item;
    if (node && isOptional(node)) return false;
  }
  return true;
}

const isOptional = (node: Node) => ["optional", "nullish", "exact_optional", "undefinedable"].includes(node.type ?? "");
function unwrap(node: Node | undefined): Node | undefined {
  let inner = node;
  while (inner?.wrapped || (inner?.pipe && !inner.entries && inner.pipe[0] !== inner))
    inner = inner.wrapped ?? inner.pipe?.[0];
  return inner;
}
