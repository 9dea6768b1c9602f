const strict = new TextDecoder("utf-8", { fatal: true });

/** The text of a subtitle file without its byte order mark, or the reason why it cannot be decoded. UTF-8 only. */
export function decodeText(bytes: Uint8Array): { text: string } | { fault: string } {
  const [first, second] = bytes;
  if ((first === 0xff && second === 0xfe) || (first === 0xfe && second === 0xff))
    return { fault: "it is in UTF-16; convert it to UTF-8" };
  // A NUL also indicates UTF-16 or UTF-32 without a mark.
  if (bytes.includes(0)) return { fault: "it contains NUL bytes; if it is in UTF-16, convert it to UTF-8" };
  try {
    return { text: strict.decode(bytes) };
  } catch {
    return { fault: "it is not in UTF-8; convert it from whatever it is in" };
  }
}
