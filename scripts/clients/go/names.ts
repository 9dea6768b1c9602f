/** Words that Go writes in capitals. */
const INITIALISMS = new Set(
  "api css csv cidr dash hls html http id ids ip json jwt mp4 rss rtmp sha256 srt url uri vr vtt whip".split(" "),
);

/** `video_asset` → `VideoAsset`, `hls_url` → `HLSURL`, `listAssets` → `ListAssets`. */
export function exported(text: string): string {
  const words = text
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .split(/[^A-Za-z0-9]+/)
    .filter(Boolean);
  const name = words.map(capitalized).join("");
  return /^[0-9]/.test(name) ? `N${name}` : name;
}

function capitalized(word: string): string {
  const lower = word.toLowerCase();
  if (lower === "ids") return "IDs";
  return INITIALISMS.has(lower) ? word.toUpperCase() : word.charAt(0).toUpperCase() + word.slice(1);
}

const KEYWORDS = new Set(
  "break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var body ctx query options".split(
    " ",
  ),
);

/** `upload_id` → `uploadID`: the name of a parameter. */
export function parameter(text: string): string {
  const name = exported(text);
  const first = /^[A-Z]+(?=[A-Z][a-z]|$)|^[A-Z]/.exec(name)?.[0] ?? "";
  const lower = first.toLowerCase() + name.slice(first.length);
  return KEYWORDS.has(lower) ? `${lower}_` : lower;
}

/** A comment of a declaration, at `indent`. */
export const comment = (text: string, indent = ""): string =>
  text
    .trim()
    .split("\n")
    .map((line) => `${indent}// ${line}`.trimEnd())
    .join("\n");
