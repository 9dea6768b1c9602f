import { join } from "node:path";
import { paths } from "../build/paths.ts";

/**
 * A page of the guide: a Markdown document, relative to the root of the project, the name of its HTML file, and how the guide
 * calls it where that is not its title.
 */
export type GuidePage = { source: string; name: string; label?: string };
export type Group = { title: string; about: string; pages: GuidePage[] };

const inDocs = (...names: string[]): GuidePage[] =>
  names.map((name) => ({ source: `docs/${name}.md`, name: name.replaceAll("/", "-") }));

/** The pages in the order in which the guide lists them, by who reads them. */
export const GROUPS: readonly Group[] = [
  {
    title: "Publish videos",
    about: "For people who work in the console.",
    pages: inDocs("guide/publish", "guide/go-live", "guide/captions", "guide/share", "console", "accessibility"),
  },
  {
    title: "Run a server",
    about: "For operators.",
    pages: [
      { source: "README.md", name: "start", label: "Get started" },
      ...inDocs("operations", "live", "encoding", "scaling", "security", "privacy", "import", "compare"),
    ],
  },
  {
    title: "Build on it",
    about: "For developers.",
    pages: inDocs(
      "api",
      "player",
      "webhooks",
      "clients",
      "clients-python",
      "clients-php",
      "clients-go",
      "integrations",
      "mux",
      "agents",
      "worker-protocol",
    ),
  },
  {
    title: "How it is made",
    about: "For those who change vodbox.",
    pages: inDocs("architecture", "recipes", "benchmarks", "third-party"),
  },
];

export const PAGES: readonly GuidePage[] = GROUPS.flatMap(({ pages }) => pages);

export const fileOf = ({ source }: GuidePage): string => join(paths.root, source);
