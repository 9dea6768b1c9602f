import { posix } from "node:path";
import { Marked, type Tokens } from "marked";
import { html, Markup } from "#web/html.ts";
import { type GuidePage, PAGES } from "./pages.ts";

export type Heading = { depth: number; id: string; text: string };
/** What a search finds: the text below one heading, without the headings below it. */
export type Section = { id: string; title: string; text: string };
export type Rendered = {
  title: string;
  /** The first paragraph, as text. */
  summary: string;
  /** HTML of the document, with its title. */
  html: string;
  headings: Heading[];
  sections: Section[];
  /** Images that the document shows, relative to the root of the project. */
  images: string[];
};

/** As GitHub makes the anchor of a heading. */
export const anchorOf = (heading: string): string =>
  heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}_\- ]/gu, "")
    .replaceAll(" ", "-");

const plain = (html: string): string =>
  html
    .replaceAll(/<[^>]+>/g, " ")
    .replaceAll(
      /&(amp|lt|gt|quot|#39);/g,
      (entity) => ({ "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'" })[entity] ?? "&",
    )
    .replaceAll(/\s+/g, " ")
    .trim();

/** The name under which the guide has an image: all of its files are in one folder. */
export const imageName = (image: string): string => image.replace(/^docs\/images\//, "").replaceAll("/", "-");

/**
 * Where a link of a document leads in the guide: another page, with its anchor, or undefined for a file of the project that the
 * guide does not have.
 */
function targetOf(page: GuidePage, href: string): string | undefined {
  if (/^[a-z]+:/i.test(href) || href.startsWith("#")) return href;
  const [path = "", anchor] = href.split("#");
  const source = posix.normalize(posix.join(posix.dirname(page.source), path));
  const other = PAGES.find((one) => one.source === source);
  return other && `${other.name}.html${anchor === undefined ? "" : `#${anchor}`}`;
}

/** Renders a document of the project (GitHub Flavored Markdown) as a part of a page of the guide. */
export function rendered(page: GuidePage, markdown: string): Rendered {
  const headings: Heading[] = [];
  const images: string[] = [];
  const imageOf = (href: string) => {
    const image = posix.normalize(posix.join(posix.dirname(page.source), href));
    if (!images.includes(image)) images.push(image);
    return imageName(image);
  };
  const marked = new Marked({ gfm: true });
  marked.use({
    renderer: {
      heading({ tokens, depth, text }: Tokens.Heading) {
        const content = this.parser.parseInline(tokens);
        const id = anchorOf(text);
        headings.push({ depth, id, text: plain(content) });
        return `<h${depth} id="${id}">${content}${depth === 1 ? "" : `<a class="anchor" href="#${id}" aria-label="Link to this section">#</a>`}</h${depth}>\n`;
      },
      link({ href, tokens }: Tokens.Link) {
        const text = this.parser.parseInline(tokens);
        const target = targetOf(page, href);
        return target === undefined ? text : html`<a href="${target}">${new Markup(text)}</a>`.text;
      },
      image: ({ href, text }: Tokens.Image) => html`<img src="${imageOf(href)}" alt="${text}" loading="lazy">`.text,
      // Scrolled with the keyboard, too, as tables are, which are wider than a phone.
      code: ({ text }: Tokens.Code) => html`<pre tabindex="0"><code>${text}\n</code></pre>\n`.text,
      table(token: Tokens.Table) {
        // A header without a text is none for screen readers.
        const cells = (row: Tokens.TableCell[]) =>
          row.map((cell) => this.tablecell(cell.text === "" ? { ...cell, header: false } : cell)).join("");
        const head = token.header.some(({ text }) => text !== "")
          ? `<thead><tr>${cells(token.header)}</tr></thead>`
          : "";
        const body = token.rows.map((row) => `<tr>${cells(row)}</tr>`).join("\n");
        return `<div class="table" tabindex="0"><table>${head}<tbody>${body}</tbody></table></div>\n`;
      },
      html: ({ text }: Tokens.HTML | Tokens.Tag) =>
        text.replaceAll(/(src|srcset)="([^":]+)"/g, (_, name: string, href: string) => `${name}="${imageOf(href)}"`),
    },
  });
  const body = marked.parse(markdown, { async: false });
  const title = headings[0]?.text ?? page.name;
  return {
    title,
    summary: plain(/<p>([\s\S]*?)<\/p>/.exec(body)?.[1] ?? ""),
    html: body,
    headings,
    sections: sectionsOf(body, title),
    images,
  };
}

function sectionsOf(html: string, title: string): Section[] {
  const [, ...parts] = html.split(/<h[1-6] id="/);
  return parts.map((part, index) => {
    const end = part.indexOf("</h");
    const start = part.indexOf('">');
    const heading = plain(part.slice(start + 2, end).replace(/<a class="anchor".*$/, ""));
    return {
      id: part.slice(0, start),
      title: index === 0 ? title : heading,
      text: plain(part.slice(part.indexOf(">", end) + 1)),
    };
  });
}
