import { copyFileSync, existsSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { bundleBrowserCode } from "../build/assets.ts";
import { paths } from "../build/paths.ts";
import { writeGuide } from "./write.ts";

const usage =
  "usage: npm run docs:site -- [--out DIR]   the guide as a static site, which any web server serves; default: build/site";

/** The folder is emptied first, so it must be empty already, or a guide. */
function refuseOthersFiles(out: string): void {
  const names = existsSync(out) ? readdirSync(out) : [];
  if (names.length > 0 && !names.includes("guide.css"))
    throw new Error(`${out} contains other files than a guide. Name another directory with --out.\n${usage}`);
}

const { values } = parseArgs({ options: { out: { type: "string" } } });
const out = resolve(values.out ?? join(paths.root, "build/site"));
refuseOthersFiles(out);
await bundleBrowserCode("development");
writeGuide(out);
copyFileSync(join(paths.assets, "web/guide.js"), join(out, "guide.js"));
console.log(`The guide is in ${out}; open ${join(out, "index.html")} through a web server.`);
