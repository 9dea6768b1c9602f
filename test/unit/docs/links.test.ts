import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, test } from "vitest";
import { anchorOf } from "#scripts/guide/markdown.ts";

const root = join(import.meta.dirname, "../../..");
const pages = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md"].concat(
  readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
);
const textOf = (page: string) => readFileSync(join(root, page), "utf8");
const anchorsOf = (page: string) =>
  new Set([...textOf(page).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => anchorOf(heading)));

test.each(pages)("every link of %s leads to a file and a heading that exist", (page) => {
  const broken: string[] = [];
  for (const [, target = ""] of textOf(page).matchAll(/\]\((?!https?:|mailto:)([^)\s]+)\)/g)) {
    const [path = "", anchor] = target.split("#");
    const file = path === "" ? page : join(dirname(page), path);
    if (!existsSync(join(root, file))) broken.push(target);
    else if (anchor !== undefined && !anchorsOf(file).has(anchor)) broken.push(target);
  }
  expect(broken).toEqual([]);
});
