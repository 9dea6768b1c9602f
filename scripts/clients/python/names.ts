/** Reserved words of Python, which cannot be names. */
const KEYWORDS = new Set(
  "False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return try while with yield".split(
    " ",
  ),
);

export const isName = (text: string) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(text) && !KEYWORDS.has(text);

/** `listAssets` → `list_assets`, `X-SVC-JOB-ATTEMPT-ID` → `x_svc_job_attempt_id`, `from` → `from_`. */
export function snakeCase(text: string): string {
  const name = text
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .replace(/[^A-Za-z0-9]+/g, "_")
    .toLowerCase();
  return isName(name) ? name : `${name}_`;
}

/** `video_asset` → `VideoAsset`, `initiateUpload` → `InitiateUpload`. */
export const pascalCase = (text: string) =>
  text
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("");

/** A literal. JSON's strings are also Python's, except for a lone surrogate, which no name or value here has. */
export const literal = (value: unknown): string =>
  value === null ? "None" : typeof value === "boolean" ? (value ? "True" : "False") : JSON.stringify(value);

/** A docstring at `indent`. */
export function docstring(lines: string[], indent: string): string {
  const escaped = lines.map((line) => line.replaceAll("\\", "\\\\").replaceAll('"', '\\"'));
  if (escaped.length === 1) return `${indent}"""${escaped[0]}"""\n`;
  const [first, ...rest] = escaped;
  return [`${indent}"""${first}`, ...rest.map((line) => (line ? indent + line : "")), `${indent}"""\n`].join("\n");
}
