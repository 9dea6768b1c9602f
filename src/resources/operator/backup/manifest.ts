import * as v from "valibot";
import { SECRET_NAMES } from "../../../config/secrets.ts";
import { UserError } from "../../../lib/errors.ts";

/** Where things lie in an archive. The last two come last, so that what was cut off lacks them. */
export const DATABASE = "vodbox.db";
export const OBJECTS = "objects/";
export const OBJECT_LIST = "objects.jsonl";
export const MANIFEST = "manifest.json";
export const MANIFEST_SUM = "manifest.json.sha256";
export const secretMember = (name: string) => `secrets/${name}`;

const FORMAT = 1;

const Manifest = v.object({
  format: v.number(),
  vodbox: v.string(),
  created_at: v.string(),
  /** Newest migration of the database. */
  schema: v.string(),
  counts: v.record(v.string(), v.number()),
  storage: v.picklist(["local", "s3", "none"]),
  /** Whether the archive holds the objects themselves. */
  with_objects: v.boolean(),
  /** Their names become paths. */
  secrets: v.array(v.picklist(SECRET_NAMES)),
  objects: v.object({ count: v.number(), bytes: v.number(), missing: v.number() }),
  /** Of all members but the objects, whose own stand in the list. */
  sha256: v.record(v.string(), v.string()),
});
export type Manifest = v.InferOutput<typeof Manifest>;

export const writeManifest = (manifest: Omit<Manifest, "format">): Buffer =>
  Buffer.from(`${JSON.stringify({ format: FORMAT, ...manifest }, null, 2)}\n`);

/** Throws UserError for what no backup of this vodbox has. */
export function readManifest(bytes: Buffer): Manifest {
  const parsed = v.safeParse(Manifest, jsonOf(bytes));
  if (!parsed.success) throw new UserError("The archive's manifest cannot be read: it was altered, or is no backup's.");
  if (parsed.output.format > FORMAT)
    throw new UserError(`The backup was made by vodbox ${parsed.output.vodbox}, which is newer; restore it with that.`);
  return parsed.output;
}

const ListedObject = v.union([
  v.strictObject({ key: v.string(), missing: v.literal(true) }),
  v.strictObject({ key: v.string(), bytes: v.number(), etag: v.string(), sha256: v.optional(v.string()) }),
]);
export type ListedObject = v.InferOutput<typeof ListedObject>;

export function readListed(line: string): ListedObject {
  const parsed = v.safeParse(ListedObject, jsonOf(line));
  if (!parsed.success) throw new UserError("The archive's list of objects cannot be read: it was altered.");
  return parsed.output;
}

function jsonOf(bytes: Buffer | string): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return null;
  }
}
