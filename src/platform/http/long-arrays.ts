import * as v from "valibot";

/** What valibot keeps of a schema, as far as it is read here and in validate.ts. */
export type SchemaNode = {
  kind?: string;
  type?: string;
  entries?: Record<string, SchemaNode>;
  wrapped?: SchemaNode;
  pipe?: SchemaNode[];
  item?: SchemaNode;
  requirement?: number;
  metadata?: { errorCode?: string };
};
type PathItem = string | number;
export type LongArray = { path: PathItem[]; message: string };

/**
 * The first array in `value` that is longer than its schema allows, or null. valibot counts items after it has validated each of
 * them, which takes seconds for a body of a MiB, so lengths are compared first.
 */
export function longArray(schema: unknown, value: unknown, path: PathItem[] = []): LongArray | null {
  if (typeof value !== "object" || value === null) return null;
  for (let node = schema as SchemaNode | undefined; node; node = inner(node)) {
    if (Array.isArray(value)) {
      const long = lengthFault(node, value);
      if (long !== null) return { path, message: long };
      if (node.type === "array" && node.item) return longInItems(node.item, value, path);
    } else if (node.entries) return longInEntries(node.entries, value as Record<string, unknown>, path);
  }
  return null;
}

function longInItems(item: SchemaNode, values: readonly unknown[], path: PathItem[]): LongArray | null {
  for (const [index, value] of values.entries()) {
    const found = longArray(item, value, [...path, index]);
    if (found) return found;
  }
  return null;
}

function longInEntries(
  entries: Record<string, SchemaNode>,
  values: Record<string, unknown>,
  path: PathItem[],
): LongArray | null {
  for (const [name, entry] of Object.entries(entries)) {
    if (!Object.hasOwn(values, name)) continue;
    const found = longArray(entry, values[name], [...path, name]);
    if (found) return found;
  }
  return null;
}

/** The schema below an optional one, or of a pipe. */
const inner = ({ wrapped, pipe }: SchemaNode): SchemaNode | undefined =>
  wrapped ?? pipe?.find(({ kind }) => kind === "schema");

/** A pipe may be the first item of another one. */
const limitOf = ({ pipe = [] }: SchemaNode): SchemaNode | undefined =>
  pipe.find(({ type }) => type === "max_length") ??
  pipe.map((each) => limitOf(each)).find((limit) => limit !== undefined);

/** The message of valibot for the length alone. */
function lengthFault(node: SchemaNode, value: unknown[]): string | null {
  const limit = node.type === "array" ? limitOf(node) : undefined;
  if (limit?.requirement === undefined || value.length <= limit.requirement) return null;
  const action = limit as unknown as v.PipeItem<unknown, unknown, v.BaseIssue<unknown>>;
  return v.safeParse(v.pipe(v.unknown(), action), value).issues?.[0]?.message ?? `must be at most ${limit.requirement}`;
}
