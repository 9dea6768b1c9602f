import { html, Markup } from "#web/html.ts";
import type { Heading, Rendered } from "./markdown.ts";
import { GROUPS, type GuidePage, PAGES } from "./pages.ts";

/** A page of the guide with its document. */
export type Chapter = GuidePage & Rendered;

const find = (chapters: readonly Chapter[], name: string | undefined) => chapters.find((one) => one.name === name);
const labelOf = ({ label, title }: Chapter) => label ?? title;

const navigation = (chapters: readonly Chapter[], current: string): Markup[] =>
  GROUPS.map(({ title, pages }) => {
    const items = pages.map(({ name }) => {
      const chapter = find(chapters, name);
      const mark = name === current && html` aria-current="page"`;
      return chapter && html`<li><a href="${name}.html"${mark}>${labelOf(chapter)}</a></li>`;
    });
    return html`<h2>${title}</h2><ul>${items}</ul>\n`;
  });

/** Headings of a long page; those of short ones are in view anyway. */
function contents(headings: readonly Heading[]): Markup | null {
  const shown = headings.filter(({ depth }) => depth === 2);
  if (shown.length < 2) return null;
  const items = shown.map(({ id, text }) => html`<li><a href="#${id}">${text}</a></li>`);
  return html`<nav class="contents" aria-label="On this page"><h2>On this page</h2><ul>${items}</ul></nav>`;
}

function neighbors(chapters: readonly Chapter[], name: string): Markup {
  const index = PAGES.findIndex((page) => page.name === name);
  const to = (at: number, rel: string, text: string) => {
    const chapter = find(chapters, PAGES[at]?.name);
    if (!chapter) return html`<span></span>`;
    return html`<a rel="${rel}" href="${chapter.name}.html"><span>${text}</span>${labelOf(chapter)}</a>`;
  };
  return html`<nav class="neighbors" aria-label="Pages before and after">${to(index - 1, "prev", "Previous")}${to(index + 1, "next", "Next")}</nav>`;
}

/** The text of the document around all pages. */
const document = (title: string, side: Markup[], main: Markup): string =>
  html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark"><title>${title}</title>
<link rel="icon" href="guide-icon.svg"><link rel="stylesheet" href="guide.css"><script src="guide.js" defer></script></head>
<body><a class="skip" href="#main">Skip to the text</a>
<header><button id="menu" aria-expanded="false" aria-controls="side">Menu</button><a class="home" href="index.html"><img src="guide-icon.svg" alt="" width="22" height="22">vodbox guide</a>
<div class="search" role="search"><input id="query" type="search" placeholder="Search" aria-label="Search the guide" autocomplete="off" spellcheck="false"><kbd>/</kbd><div id="found"></div><p id="count" class="heard" role="status"></p></div></header>
<div class="columns"><nav id="side" aria-label="Pages">${side}</nav>
<main id="main">${main}</main></div></body></html>
`.text;

/** HTML of the page of one document. */
export function chapterPage(chapter: Chapter, chapters: readonly Chapter[]): string {
  const { name, title, headings } = chapter;
  const article = html`<article>${new Markup(chapter.html)}${neighbors(chapters, name)}</article>`;
  return document(`${title} · vodbox`, navigation(chapters, name), html`${article}${contents(headings)}`);
}

/** HTML of the first page, which says what there is for whom. */
export function startPage(chapters: readonly Chapter[]): string {
  const card = ({ name }: GuidePage) => {
    const chapter = find(chapters, name);
    return (
      chapter &&
      html`<li><a href="${name}.html"><strong>${labelOf(chapter)}</strong><span>${firstSentence(chapter.summary)}</span></a></li>`
    );
  };
  const groups = GROUPS.map(
    ({ title, about, pages }) =>
      html`<section><h2>${title}</h2><p>${about}</p><ul class="cards">${pages.map(card)}</ul></section>\n`,
  );
  const main = html`<article class="start"><h1>vodbox guide</h1>
<p class="lead">Upload, encode, stream and share videos from your own server. Everything here also works offline: the server carries this guide.</p>
${groups}</article>`;
  return document("vodbox guide", navigation(chapters, ""), main);
}

const firstSentence = (text: string): string => /^.*?[.:](?= |$)/.exec(text)?.[0].replace(/:$/, ".") ?? text;
