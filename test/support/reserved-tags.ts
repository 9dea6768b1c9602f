/** Names of tags that are refused. Not read from the source: a test requires that each of them is. */
export const RESERVED_TAGS = ["__proto__", "constructor", "prototype"];
