/** Why a reference leads nowhere that may be looked at. */
export type ReferenceFault = {
  code: "reference_not_relative" | "reference_outside" | "reference_malformed";
  message: string;
};

/** Names without escapes, none of which begins with a dot. */
const PLAIN = /^[A-Za-z0-9_-][A-Za-z0-9._-]*(?:\/[A-Za-z0-9_-][A-Za-z0-9._-]*)*$/;

const fault = (code: ReferenceFault["code"], message: string): ReferenceFault => ({ code, message });

/**
 * The path that `reference`, as it stands in the file at `base`, leads to (RFC 3986, 5.2), both without a slash before
 * them. Only what is relative and stays below the root is one: whatever a player would read as another site, as the root
 * of this one or as something above it is a fault.
 */
export function resolveReference(base: string, reference: string): { path: string } | ReferenceFault {
  // What packagers write, a hundred thousand times in one manifest.
  if (PLAIN.test(reference)) return { path: base.slice(0, base.lastIndexOf("/") + 1) + reference };
  const shown = JSON.stringify(reference.slice(0, 200));
  if (reference === "") return fault("reference_malformed", "An address is empty.");
  if (/\p{Cc}/u.test(reference) || !reference.isWellFormed())
    return fault("reference_malformed", `${shown} holds control characters.`);
  // Browsers read a backslash as a slash.
  if (/^[a-z][a-z0-9+.-]*:/i.test(reference) || /^[/\\]/.test(reference))
    return fault("reference_not_relative", `${shown} is no relative address.`);
  if (/[\\?#]/.test(reference))
    return fault("reference_malformed", `${shown} holds a backslash, a query or a fragment.`);
  const segments = base.split("/").slice(0, -1);
  const given = reference.split("/");
  for (const [index, raw] of given.entries()) {
    const segment = decoded(raw);
    if (segment === null || (segment !== raw && /^\.{1,2}$|[/\\]|\p{Cc}/u.test(segment)))
      return fault("reference_malformed", `${shown} is badly percent-encoded.`);
    if (segment === ".") continue;
    if (segment === "..") {
      if (segments.length === 0) return fault("reference_outside", `${shown} leads out of the batch.`);
      segments.pop();
    } else if (segment === "" && index < given.length - 1)
      return fault("reference_malformed", `${shown} holds an empty segment.`);
    else segments.push(segment);
  }
  // What ends in a slash or a dot is a folder, which is only good as a base.
  if (/^\.{1,2}$/.test(given.at(-1) as string)) segments.push("");
  return { path: segments.join("/") };
}

function decoded(segment: string): string | null {
  try {
    return decodeURIComponent(segment);
  } catch {
    return null;
  }
}
