import * as v from "valibot";
import { UserError } from "#lib/base";
import { STORE_KINDS } from "#model/enums.ts";
import { SECRET_NAMES } from "#platform/config/secrets.ts";

/** Members of an archive. The last two are at the end, so that a truncated archive lacks them. */
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
  storage: v.picklist([...STORE_KINDS, "none"]),
  /** Whether the archive contains the objects themselves. */
  with_objects: v.boolean(),
  /** Their names become paths. */
  secrets: v.array(v.picklist(SECRET_NAMES)),
  objects: v.object({ count: v.number(), bytes: v.number(), missing: v.number() }),
  /** Checksums of all members except the objects, whose checksums are in the list. */
  sha256: v.record(v.string(), v.string()),
});
export type Manifest = v.InferOutput<typeof Manifest>;

export const writeManifest = (manifest: Omit<Manifest, "format">): Buffer =>
  Buffer.from(`${JSON.stringify({ format: FORMAT, ...manifest }, null, 2)}\n`);

/** Throws UserError for a manifest that no backup of this vodbox has. */
export function readManifest(bytes: Buffer): Manifest {
  const parsed = v.safeParse(Manifest, jsonOf(bytes));
  if (!parsed.success)
    throw new UserError("The manifest of the archive is invalid: the file was altered or is not a backup.");
  if (parsed.output.format > FORMAT)
    throw new UserError(
      `The backup was written by a newer vodbox (${parsed.output.vodbox}); restore it with that version or a later one.`,
    );
  return parsed.output;
}

const ListedObject = v.union([
  v.strictObject({ key: v.string(), missing: v.literal(true) }),
  v.strictObject({ key: v.string(), bytes: v.number(), etag: v.string(), sha256: v.optional(v.string()) }),
]);
export type ListedObject = v.InferOutput<typeof ListedObject>;

export function readListed(line: string): ListedObject {
  const parsed = v.safeParse(ListedObject, jsonOf(line));
  if (!parsed.success) throw new UserError("The object list of the archive is invalid: the file was altered.");
  return parsed.output;
}

function jsonOf(bytes: Buffer | string): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return null;
  }
}
