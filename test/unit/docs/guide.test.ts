import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { PAGES } from "#scripts/guide/pages.ts";
import { type SearchEntry, writeGuide } from "#scripts/guide/write.ts";
import { testApp } from "#test/support/app.ts";
import { emptyFolder } from "#test/support/folder.ts";

const root = join(import.meta.dirname, "../../..");
let folder: string;
const textOf = (name: string) => readFileSync(join(folder, name), "utf8");
beforeAll(() => {
  folder = join(emptyFolder(), "guide");
  writeGuide(folder);
});

test("every document is a page, except those that repeat one", () => {
  const documents = readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" });
  const sources = documents.filter((name) => name.endsWith(".md")).map((name) => `docs/${name}`);
  expect(PAGES.map(({ source }) => source).sort()).toEqual([...sources, "README.md"].sort());
});

describe("pages", () => {
  const names = ["index", ...PAGES.map(({ name }) => name)].map((name) => [`${name}.html`]);
  test.each(names)("%s: every link and image leads to a file and an anchor of the guide", (name) => {
    const broken: string[] = [];
    const html = textOf(name);
    for (const [, target = ""] of html.matchAll(/ (?:href|src|srcset)="(?![a-z]+:)([^"]*)"/g)) {
      const [file = "", anchor] = target.split("#");
      // The script is bundled with the others.
      if (file === "guide.js") continue;
      if (file !== "" && !existsSync(join(folder, file))) broken.push(target);
      else if (anchor !== undefined && anchor !== "main" && !textOf(file || name).includes(` id="${anchor}"`))
        broken.push(target);
    }
    expect(broken).toEqual([]);
  });

  test.each(names)("%s has one title, and no inline script or style", (name) => {
    const html = textOf(name);
    expect(html.match(/<h1/g)).toHaveLength(1);
    expect(html).not.toMatch(/<script(?! src="guide\.js")|<style|<[^>]* (?:style|on[a-z]+)=/);
  });
});

test("a server has every file of it", async () => {
  const { opened } = await testApp();
  const missing: string[] = [];
  for (const name of [...readdirSync(folder), "guide.js"]) {
    const { status } = await opened.server.fetch(new Request(`http://vodbox.test/docs/guide/${name}`));
    if (status !== 200) missing.push(`${name}: ${status}`);
  }
  expect(missing).toEqual([]);
});

test("the search has each section once, with its text", () => {
  const entries = JSON.parse(textOf("search.json")) as SearchEntry[];
  expect(new Set(entries.map(({ url }) => url)).size).toBe(entries.length);
  const limits = entries.find(({ url }) => url === "guide-share.html#end-it");
  expect(limits).toMatchObject({ page: "Share a video with a password", title: "End it" });
  expect(limits?.text).toMatch(/^Delete share ends the link within seconds/);
});
