import jsTokens from "js-tokens";

/** Words that identifiers do not contain, each with the standard one. */
const WORDS: Record<string, string> = {
  broadcast: "stream",
  picture: "image, frame or video",
  sound: "audio",
  told: "report, or the noun itself",
  turn: "lock, queue, rotation or class of service",
};

/** Where such a word is a standard one, or the name is stored or sent: files or folders, and the words. */
const ALLOWED: readonly (readonly [prefix: string, words: readonly string[], reason: string])[] = [
  ["src/platform/cluster/", ["broadcast"], "a message to all processes"],
  ["src/features/event-stream/hub.ts", ["broadcast"], "a message to all connections"],
  ["src/media/truncated/stated-ends.ts", ["broadcast"], "a flag of ASF"],
  ["src/platform/http/limits.ts", ["picture"], "a limit's name in RateLimit"],
  ["src/platform/limits/expensive.ts", ["picture"], "a queue's name in the metrics"],
];
const FOLDERS = /^(?:src|cli|scripts|storage)\//;
/** The words that identifiers of tests do not contain either. */
const WORDS_OF_TESTS = ["broadcast"];
const IDENTIFIER = /^(?:IdentifierName|PrivateIdentifier|JSXIdentifier)$/;
/** Fields of the API, columns and log fields; settings. */
const STORED = /[a-z]_|^VODBOX_/;

/** The words of `isAnOldName`, `OLD_NAME` and `#oldName`, in lower case and singular. */
const wordsOf = (name: string): string[] =>
  name
    .replace(/^#/, "")
    // A name of browsers.
    .replace(/picture_?in_?picture/i, "")
    .split(/_|(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])/)
    .map((word) => word.toLowerCase().replace(/s$/, ""));

/** Faults of the identifiers that a file declares or imports, as `path:line: text`. What follows a dot is declared elsewhere. */
export function identifierFaults(path: string, text: string): string[] {
  if (path.startsWith("scripts/lint-terms/")) return [];
  const words = FOLDERS.test(path) ? Object.keys(WORDS) : WORDS_OF_TESTS;
  const allowed = ALLOWED.flatMap(([prefix, allowedHere]) => (path.startsWith(prefix) ? allowedHere : []));
  const faults: string[] = [];
  let previous = "";
  let line = 1;
  for (const { type, value } of jsTokens(text, { jsx: path.endsWith("x") })) {
    if (IDENTIFIER.test(type) && !/^\??\.$/.test(previous) && !STORED.test(value))
      for (const word of wordsOf(value))
        if (words.includes(word) && !allowed.includes(word))
          faults.push(`${path}:${line}: The identifier ${value} contains "${word}"; use ${WORDS[word]}.`);
    if (!/WhiteSpace|LineTerminator|Comment/.test(type)) previous = value;
    line += value.split("\n").length - 1;
  }
  return faults;
}
