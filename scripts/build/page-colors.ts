import { readFileSync } from "node:fs";
import { join } from "node:path";
import { paths } from "./paths.ts";

/** What the pages for viewers take from the console's colors. */
const NAMES = ["page", "surface", "line", "strong-line", "text", "quiet-text", "accent"];

/**
 * The console's colors as a style sheet for browsers without `light-dark()`: viewers have televisions and old phones. Throws when the
 * tokens lack one.
 */
export function pageColors(): string {
  const tokens = readFileSync(join(paths.root, "src/web/console/design/tokens.css"), "utf8");
  const pairs = NAMES.map((name) => {
    const [, light, dark] = new RegExp(`--${name}: light-dark\\((#\\w+), (#\\w+)\\)`).exec(tokens) ?? [];
    if (!light || !dark) throw new Error(`tokens.css has no --${name}`);
    return { name, light, dark };
  });
  const block = (theme: "light" | "dark") => pairs.map((pair) => `--${pair.name}:${pair[theme]}`).join(";");
  return `:root{color-scheme:light dark;${block("light")}}@media(prefers-color-scheme:dark){:root{${block("dark")}}}`;
}
