import { createHash } from "node:crypto";
import * as v from "valibot";
import { HttpError, invalid, withoutTrailing } from "#lib/base";

/** The headers of tus 1.0.0 (tus.io/protocols/resumable-upload). */
export const VERSION = "1.0.0";
export const EXTENSIONS = "creation,creation-with-upload,expiration,termination,checksum";
export const ALGORITHMS = ["sha1", "sha256", "md5"] as const;
export const MEDIA_TYPE = "application/offset+octet-stream";

export const cors = {
  allowHeaders:
    "Authorization, X-API-Key, Content-Type, Tus-Resumable, Upload-Length, Upload-Offset, Upload-Metadata, Upload-Checksum, X-HTTP-Method-Override, X-Requested-With, X-Request-ID, *",
  exposeHeaders:
    "Location, Tus-Resumable, Tus-Version, Tus-Extension, Tus-Max-Size, Tus-Checksum-Algorithm, Upload-Offset, Upload-Length, Upload-Expires, X-SVC-Asset-Id, X-Request-Id",
};

/** "Tus-Resumable": required in every request but OPTIONS; other versions are not processed. */
export function requireVersion(headers: Headers): void {
  if (headers.get("tus-resumable") === VERSION) return;
  throw new HttpError(412, "tus_version_unsupported", `Send Tus-Resumable: ${VERSION}.`, {
    headers: { "tus-version": VERSION },
  });
}

const WholeNumber = v.pipe(v.string(), v.regex(/^\d{1,15}$/), v.transform(Number));

export function wholeNumber(headers: Headers, name: string): number {
  const version = headers.get(name);
  if (version === null)
    throw new HttpError(422, "parameter_missing", `Send ${name}.`, { details: { [name]: ["is required"] } });
  const parsed = v.safeParse(WholeNumber, version);
  return parsed.success ? parsed.output : invalid(name, "must be a whole number");
}

/** "Upload-Metadata": pairs of a key and an optional Base64 value. */
export function metadataOf(headers: Headers): Record<string, string> {
  const text = headers.get("upload-metadata") ?? "";
  const pairs = text
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

/** "Upload-Checksum": the hash to feed with the body; its check throws 460 when it differs. Null without the header. */
export function checksumOf(headers: Headers) {
  const text = headers.get("upload-checksum");
  if (text === null) return null;
  const [algorithm = "", expected = ""] = text.split(" ");
  if (!ALGORITHMS.some((known) => known === algorithm))
    invalid("Upload-Checksum", `must be of ${ALGORITHMS.join(", ")}`);
  const hash = createHash(algorithm);
  return {
    hash,
    check() {
      if (hash.digest("base64") === expected) return;
      throw new HttpError(460, "checksum_mismatch", "The checksum of the bytes differs; nothing was stored.");
    },
  };
}
