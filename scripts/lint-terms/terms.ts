/**
 * Discouraged terms, each with the standard one. A pattern is the source of a regular expression, matched at word
 * boundaries and case-insensitively.
 */
const TERMS: [pattern: string, use: string][] = [
  // Metaphors of the first version.
  ["doors?", "handler, safe HTTP client or pipeline"],
  ["dut(?:y|ies)", "scheduled task"],
  ["keepers?", "supervisor"],
  ["abreast", "concurrently"],
  ["heart", "heartbeat"],
  ["(?:hands? out|handed out|handing out)", "presign or return"],
  ["mend(?:s|ed|ing)?", "fix"],
  ["turns?", "lock, queue position or event loop iteration"],
  ["rooms?", "space, directory or namespace"],
  // Literary words.
  ["unless told(?: otherwise)?", "by default"],
  ["anew", "again"],
  ["(?:nobody|whoever|whosoever)", "no one, or name the subject"],
  ["beside", "next to"],
  ["(?:stands?|stood)", "is"],
  ["(?:tells?|told|telling)", "report, return or write"],
  ["(?:goes on|go on|going on|went on)", "continue"],
  ["(?:come|came) to nothing", "fail"],
  ["lets? go of", "release or delete"],
  ["called off", "aborted"],
  ["looks? after", "manage"],
  // Words with a standard synonym in the field.
  ["delivery network", "CDN"],
  ["the interface", "the API"],
  ["sounds?", "audio"],
  ["pictures?", "image"],
];

/** Terms that are standard ones in some files, or folders, and discouraged elsewhere. */
const TERMS_ELSEWHERE: [pattern: string, use: string, where: readonly string[]][] = [
  // A message to all processes, or to all connections.
  ["broadcasts?", "stream or television", ["src/platform/cluster/", "src/features/event-stream/hub.ts"]],
];

/** The terms that are discouraged in a file. */
export const termsOf = (path: string): [pattern: string, use: string][] => [
  ...TERMS,
  ...TERMS_ELSEWHERE.filter(([, , where]) => !where.some((prefix) => path.startsWith(prefix))).map(
    ([pattern, use]): [string, string] => [pattern, use],
  ),
];
