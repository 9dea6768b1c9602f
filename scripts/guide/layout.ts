import { escaped, type Heading, type Rendered } from "./markdown.ts";
import { GROUPS, type GuidePage, PAGES } from "./pages.ts";

/** A page of the guide with its document. */
export type Chapter = GuidePage & Rendered;

const link = (href: string, text: string, isCurrent = false): string =>
  `<a href="${href}"${isCurrent ? ' aria-current="page"' : ""}>${escaped(text)}</a>`;

function labelOf(chapters: readonly Chapter[], name: string): string {
  const chapter = chapters.find((one) => one.name === name);
  return chapter?.label ?? chapter?.title ?? name;
}

function navigation(chapters: readonly Chapter[], current: string): string {
  return GROUPS.map(
    ({ title, pages }) =>
      `<h2>${escaped(title)}</h2><ul>${pages
        .map(({ name }) => `<li>${link(`${name}.html`, labelOf(chapters, name), name === current)}</li>`)
        .join("")}</ul>`,
  ).join("\n");
}

/** Headings of a long page; of short ones they are in view anyway. */
function contents(headings: readonly Heading[]): string {
  const shown = headings.filter(({ depth }) => depth === 2);
  if (shown.length < 2) return "";
  const items = shown.map(({ id, text }) => `<li>${link(`#${id}`, text)}</li>`).join("");
  return `<nav class="contents" aria-label="On this page"><h2>On this page</h2><ul>${items}</ul></nav>`;
}

function neighbours(chapters: readonly Chapter[], name: string): string {
  const index = PAGES.findIndex((page) => page.name === name);
  const to = (at: number, rel: string) => {
    const chapter = chapters.find((one) => one.name === PAGES[at]?.name);
    return chapter
      ? `<a rel="${rel}" href="${chapter.name}.html"><span>${rel === "prev" ? "Previous" : "Next"}</span>${escaped(labelOf(chapters, chapter.name))}</a>`
      : "<span></span>";
  };
  return `<nav class="neighbours" aria-label="Pages before and after">${to(index - 1, "prev")}${to(index + 1, "next")}</nav>`;
}

/** The document around all pages. `main` is HTML. */
function document(title: string, side: string, main: string): string {
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark"><title>${escaped(title)}</title>
<link rel="icon" href="guide-icon.svg"><link rel="stylesheet" href="guide.css"><script src="guide.js" defer></script></head>
<body><a class="skip" href="#main">Skip to the text</a>
<header><button id="menu" aria-expanded="false" aria-controls="side">Menu</button><a class="home" href="index.html"><img src="guide-icon.svg" alt="" width="22" height="22">vodbox guide</a>
<div class="search" role="search"><input id="query" type="search" placeholder="Search" aria-label="Search the guide" autocomplete="off" spellcheck="false"><kbd>/</kbd><div id="found"></div><p id="count" class="heard" role="status"></p></div></header>
<div class="columns"><nav id="side" aria-label="Pages">${side}</nav>
<main id="main">${main}</main></div></body></html>
`;
}

/** HTML of the page of one document. */
export function chapterPage(chapter: Chapter, chapters: readonly Chapter[]): string {
  const main = `<article>${chapter.html}${neighbours(chapters, chapter.name)}</article>${contents(chapter.headings)}`;
  return document(`${chapter.title} · vodbox`, navigation(chapters, chapter.name), main);
}

/** HTML of the first page, which says what there is for whom. */
export function startPage(chapters: readonly Chapter[]): string {
  const card = ({ name }: GuidePage) => {
    const chapter = chapters.find((one) => one.name === name);
    return chapter
      ? `<li><a href="${name}.html"><strong>${escaped(labelOf(chapters, name))}</strong><span>${escaped(firstSentence(chapter.summary))}</span></a></li>`
      : "";
  };
  const groups = GROUPS.map(
    ({ title, about, pages }) =>
      `<section><h2>${escaped(title)}</h2><p>${escaped(about)}</p><ul class="cards">${pages.map(card).join("")}</ul></section>`,
  ).join("\n");
  const main = `<article class="start"><h1>vodbox guide</h1>
<p class="lead">Upload, encode, stream and share videos from your own server. Everything here also works offline: the server carries this guide.</p>
${groups}</article>`;
  return document("vodbox guide", navigation(chapters, ""), main);
}

const firstSentence = (text: string): string => /^.*?[.:](?= |$)/.exec(text)?.[0].replace(/:$/, ".") ?? text;
