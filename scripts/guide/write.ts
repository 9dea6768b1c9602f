import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ICON } from "#web/page.ts";
import { paths } from "../build/paths.ts";
import { type Chapter, chapterPage, startPage } from "./layout.ts";
import { imageName, rendered } from "./markdown.ts";
import { fileOf, PAGES } from "./pages.ts";

/** One entry of the search: a section with its page. Titles and texts as people read them. */
export type SearchEntry = { url: string; page: string; title: string; text: string };

/**
 * Writes the documents as HTML into `folder`, which is emptied first: pages, images, the style sheet and the texts that its search
 * looks through. All files are in one folder and all links relative, so that any path serves them. The script comes with
 * the other scripts for browsers.
 */
export function writeGuide(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const chapters: Chapter[] = PAGES.map((page) => ({ ...page, ...rendered(page, readFileSync(fileOf(page), "utf8")) }));
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
  write("index.html", startPage(chapters));
  for (const chapter of chapters) write(`${chapter.name}.html`, chapterPage(chapter, chapters));
  const tokens = readFileSync(join(paths.root, "src/web/console/design/tokens.css"), "utf8");
  write("guide.css", `${tokens}\n${readFileSync(join(import.meta.dirname, "guide.css"), "utf8")}`);
  write("guide-icon.svg", decodeURIComponent(ICON.slice(ICON.indexOf(",") + 1)));
  write("search.json", JSON.stringify(chapters.flatMap(entriesOf)));
  for (const image of new Set(chapters.flatMap(({ images }) => images)))
    copyFileSync(join(paths.root, image), join(folder, imageName(image)));
}

const entriesOf = ({ name, title: page, sections }: Chapter): SearchEntry[] =>
  sections.map(({ id, title, text }) => ({ url: `${name}.html#${id}`, page, title, text }));
