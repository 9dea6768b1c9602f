import { createHash } from "node:crypto";
import * as v from "valibot";
import { HttpError, invalid } from "../../../lib/errors.ts";
import { withoutTrailing } from "../../../lib/without-trailing.ts";

/** tus 1.0.0 (tus.io/protocols/resumable-upload): what stands in its headers. */
export const VERSION = "1.0.0";
export const EXTENSIONS = "creation,creation-with-upload,expiration,termination,checksum";
export const ALGORITHMS = ["sha1", "sha256", "md5"] as const;
export const MEDIA_TYPE = "application/offset+octet-stream";

export const cors = {
  allowHeaders:
    "Authorization, X-API-Key, Content-Type, Tus-Resumable, Upload-Length, Upload-Offset, Upload-Metadata, Upload-Checksum, X-HTTP-Method-Override, X-Requested-With, X-Request-ID, *",
  exposeHeaders:
    "Location, Tus-Resumable, Tus-Version, Tus-Extension, Tus-Max-Size, Tus-Checksum-Algorithm, Upload-Offset, Upload-Length, Upload-Expires, X-Request-Id",
};

/** "Tus-Resumable": in every request but OPTIONS; of another version nothing is to be done. */
export function requireVersion(headers: Headers): void {
  if (headers.get("tus-resumable") === VERSION) return;
  throw new HttpError(412, "tus_version_unsupported", `Send Tus-Resumable: ${VERSION}.`, {
    headers: { "tus-version": VERSION },
  });
}

const Whole = v.pipe(v.string(), v.regex(/^\d{1,15}$/), v.transform(Number));

export function wholeNumber(headers: Headers, name: string): number {
  const given = headers.get(name);
  if (given === null)
    throw new HttpError(422, "parameter_missing", `Send ${name}.`, { details: { [name]: ["is required"] } });
  const parsed = v.safeParse(Whole, given);
  return parsed.success ? parsed.output : invalid(name, "must be a whole number");
}

/** "Upload-Metadata": pairs of a key and a value in Base64, which may be absent. */
export function metadataOf(headers: Headers): Record<string, string> {
  const given = headers.get("upload-metadata") ?? "";
  const pairs = given
    .split(",")
    .map((pair) => pair.trim())
    .filter(Boolean);
  return Object.fromEntries(
    pairs.map((pair) => {
      const [name = "", value = "", ...more] = pair.split(" ");
      const bytes = Buffer.from(value, "base64");
      if (more.length > 0 || withoutTrailing(bytes.toString("base64"), "=") !== withoutTrailing(value, "="))
        invalid("Upload-Metadata", `${name}: must be in Base64`);
      return [name, new TextDecoder().decode(bytes)];
    }),
  );
}

/** "Upload-Checksum": what to feed with the body, and what throws 460 when it is another one. Null without the header. */
export function checksumOf(headers: Headers) {
  const given = headers.get("upload-checksum");
  if (given === null) return null;
  const [algorithm = "", expected = ""] = given.split(" ");
  if (!ALGORITHMS.some((known) => known === algorithm))
    invalid("Upload-Checksum", `must be of ${ALGORITHMS.join(", ")}`);
  const hash = createHash(algorithm);
  return {
    hash,
    check() {
      if (hash.digest("base64") === expected) return;
      throw new HttpError(460, "checksum_mismatch", "The bytes have another checksum; nothing of them was kept.");
    },
  };
}
