import MiniSearch, { type SearchResult } from "minisearch";

/** As `search.json` has it (scripts/guide/write.ts). */
type Entry = { url: string; page: string; title: string; text: string };

const MAX_RESULTS = 12;
const BEFORE = 40;
const SHOWN = 150;

let index: Promise<MiniSearch<Entry>> | undefined;

/** Loads what is searched at the first use of the field. After a failure the next use tries again. */
function loadedIndex(): Promise<MiniSearch<Entry>> {
  index ??= load().catch((error) => {
    index = undefined;
    throw error;
  });
  return index;
}

async function load(): Promise<MiniSearch<Entry>> {
  const response = await fetch("search.json");
  if (!response.ok) throw new Error(`search.json: ${response.status}`);
  const entries = (await response.json()) as Entry[];
  const search = new MiniSearch<Entry>({
    idField: "url",
    fields: ["title", "page", "text"],
    storeFields: ["page", "title", "text"],
    searchOptions: {
      boost: { title: 4, page: 2 },
      prefix: true,
      fuzzy: (term) => (term.length > 4 ? 0.2 : false),
      combineWith: "AND",
    },
  });
  await search.addAllAsync(entries);
  return search;
}

/** Words of the query are set off; nodes, not HTML. */
function excerpt({ text, terms }: SearchResult): Node[] {
  const whole = text as string;
  const folded = whole.toLowerCase();
  const first = Math.min(...terms.map((term) => folded.indexOf(term)).filter((at) => at >= 0), whole.length);
  const from = first === whole.length ? 0 : Math.max(0, whole.lastIndexOf(" ", Math.max(0, first - BEFORE)) + 1);
  const shown = whole.slice(from, from + SHOWN);
  const nodes: Node[] = from > 0 ? [document.createTextNode("… ")] : [];
  const isTerm = new Set(terms);
  for (const word of shown.split(/(?<=[^\p{L}\p{N}_])|(?=[^\p{L}\p{N}_])/u)) {
    const node = isTerm.has(word.toLowerCase()) ? document.createElement("mark") : document.createElement("span");
    node.textContent = word;
    nodes.push(node);
  }
  if (from + SHOWN < whole.length) nodes.push(document.createTextNode(" …"));
  return nodes;
}

function itemOf(result: SearchResult): HTMLElement {
  const link = document.createElement("a");
  link.href = result.id as string;
  const title = document.createElement("strong");
  title.textContent = result.title === result.page ? result.title : `${result.page} › ${result.title}`;
  const text = document.createElement("p");
  text.append(...excerpt(result));
  link.append(title, text);
  return link;
}

/** The field in the header: results as links below it, arrow keys move through them, `/` focuses the field. */
export function offerSearch(): void {
  const query = document.querySelector<HTMLInputElement>("#query");
  const found = document.querySelector<HTMLElement>("#found");
  const heard = document.querySelector<HTMLElement>("#count");
  if (!query || !found || !heard) return;
  const say = (text: string) => {
    const line = document.createElement("p");
    line.textContent = text;
    found.replaceChildren(line);
    heard.textContent = text;
  };
  const close = () => {
    found.replaceChildren();
    heard.textContent = "";
  };
  const search = async () => {
    const text = query.value.trim();
    if (text === "") return close();
    try {
      const results = (await loadedIndex()).search(text).slice(0, MAX_RESULTS);
      // What was typed meanwhile has a search of its own.
      if (query.value.trim() !== text) return;
      if (results.length === 0) say(`Nothing about “${text}”.`);
      else {
        found.replaceChildren(...results.map(itemOf));
        // The results themselves would be read again after each key.
        heard.textContent = results.length === 1 ? "One result" : `${results.length} results`;
      }
    } catch {
      say("The search could not be loaded; try again.");
    }
  };
  query.addEventListener("input", search);
  query.addEventListener("focus", search);
  const field = query.parentElement as HTMLElement;
  field.addEventListener("keydown", (event) => {
    const links = [...found.querySelectorAll("a")];
    const at = links.indexOf(document.activeElement as HTMLAnchorElement);
    if (event.key === "Escape") {
      close();
      query.blur();
    } else if (event.key === "Enter" && at < 0) links[0]?.click();
    else if (event.key === "ArrowDown") links[at + 1]?.focus();
    else if (event.key === "ArrowUp" && at >= 0) (links[at - 1] ?? query).focus();
    else return;
    event.preventDefault();
  });
  addEventListener("click", ({ target }) => {
    if (!field.contains(target as Node) || (target as Element).closest("#found a")) close();
  });
  addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || document.activeElement === query) return;
    event.preventDefault();
    query.focus();
    query.select();
  });
}
