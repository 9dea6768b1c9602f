/** Why a reference is refused. */
export type ReferenceFault = {
  code: "reference_not_relative" | "reference_outside" | "reference_malformed";
  message: string;
};

/** Names without escapes that do not begin with a dot. */
const PLAIN = /^[A-Za-z0-9_-][A-Za-z0-9._-]*(?:\/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$/;

const fault = (code: ReferenceFault["code"], message: string): ReferenceFault => ({ code, message });

/**
 * Resolves `reference` in the file at `base` (RFC 3986, 5.2); both paths have no leading slash. Only relative
 * references that stay below the root are accepted: anything that a player would resolve to another site, to this
 * site's root or above the root is a fault.
 * @example
 * resolveReference("film/master.m3u8", "720p/1.m4s") // => { path: "film/720p/1.m4s" }
 * resolveReference("film/master.m3u8", "/1.m4s").code // => "reference_not_relative"
 */
export function resolveReference(base: string, reference: string): { path: string } | ReferenceFault {
  // The common case: packagers write it a hundred thousand times in one manifest.
  if (PLAIN.test(reference)) return { path: base.slice(0, base.lastIndexOf("/") + 1) + reference };
  const quoted = JSON.stringify(reference.slice(0, 200));
  if (reference === "") return fault("reference_malformed", "A URI is empty.");
  if (/\p{Cc}/u.test(reference) || !reference.isWellFormed())
    return fault("reference_malformed", `${quoted} contains control characters.`);
  // Browsers treat a backslash as a slash.
  if (/^[a-z][a-z0-9+.-]*:/i.test(reference) || /^[/\\]/.test(reference))
    return fault("reference_not_relative", `${quoted} is not a relative reference.`);
  if (/[\\?#]/.test(reference))
    return fault("reference_malformed", `${quoted} contains a backslash, a query or a fragment.`);
  const segments = base.split("/").slice(0, -1);
  const parts = reference.split("/");
  for (const [index, raw] of parts.entries()) {
    const segment = decoded(raw);
    if (segment === null || (segment !== raw && /^\.{1,2}$|[/\\]|\p{Cc}/u.test(segment)))
      return fault("reference_malformed", `${quoted} has invalid percent-encoding.`);
    if (segment === ".") continue;
    if (segment === "..") {
      if (segments.length === 0) return fault("reference_outside", `${quoted} leads out of the batch.`);
      segments.pop();
    } else if (segment === "" && index < parts.length - 1)
      return fault("reference_malformed", `${quoted} contains an empty segment.`);
    else segments.push(segment);
  }
  // A path that ends in a slash or a dot is a directory, which is valid only as a base.
  if (/^\.{1,2}$/.test(parts.at(-1) as string)) segments.push("");
  return { path: segments.join("/") };
}

function decoded(segment: string): string | null {
  try {
    return decodeURIComponent(segment);
  } catch {
    return null;
  }
}
