import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { describe, expect, test } from "vitest";

const root = join(import.meta.dirname, "..");
const MAX_LINES = 400;

/**
 * From the top down: a file imports from its own floor or a lower one. What stands in one line shares a floor. The
 * files that put the program together (routes, open, serve …) are one floor above all that they put together.
 */
const FLOORS: readonly (readonly string[])[] = [
  ["cli/"],
  [
    "src/serve.ts",
    "src/cluster/",
    "src/listen.ts",
    "src/tls.ts",
    "src/local-workers.ts",
    "src/open.ts",
    "src/routes.ts",
    "src/log.ts",
    "src/systemd.ts",
  ],
  ["src/scheduled-tasks/", "src/worker/"],
  ["src/web/"],
  ["src/resources/"],
  ["src/parsing/"],
  ["src/http/", "src/events/", "src/media/", "src/outbound/"],
  ["src/limits/"],
  ["src/app.ts", "src/config/"],
  ["storage/"],
  ["src/lib/"],
];

/** Whoever stands beside its floor rather than on it: what it may reach, itself apart. */
const NARROW: Record<string, readonly string[]> = {
  // It speaks HTTP to the server and never opens the database.
  "src/worker/": ["src/media/", "src/outbound/transcribe/", "src/lib/"],
  // The worker runs it far from any server.
  "src/media/": ["src/lib/"],
  "storage/": ["src/lib/"],
  // It runs in the browser.
  "src/web/client/": [],
};

/** One imports only those before it. */
const RESOURCES =
  "tenants keys signing-keys devices assets collections subtitles jobs uploads tracks playback webhooks analytics billing ingest live operator".split(
    " ",
  );

type Source = { path: string; text: string; imports: Import[] };
/** `names` is null when everything may be used: a namespace, a dynamic import. */
type Import = { target: string; names: string[] | null };

const sourcesIn = (...folders: string[]): Source[] =>
  folders
    .flatMap((folder) => readdirSync(join(root, folder), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => {
      const text = readFileSync(path, "utf8");
      return { path: relative(root, path), text, imports: importsOf(path, text) };
    });

const STATIC = /^(?:import|export)\s+(?:type\s+)?(?:([^;"']*?)\s+from\s+)?["'](\.[^"']+)["']/gm;
const DYNAMIC = /\bimport\(\s*["'](\.[^"']+)["']/g;

function importsOf(path: string, text: string): Import[] {
  const found: Import[] = [];
  const add = (specifier: string, names: string[] | null) =>
    found.push({ target: relative(root, join(dirname(path), specifier)), names });
  for (const [, clause = "", specifier = ""] of text.matchAll(STATIC)) add(specifier, namesIn(clause));
  for (const [, specifier = ""] of text.matchAll(DYNAMIC)) add(specifier, null);
  return found;
}

function namesIn(clause: string): string[] | null {
  if (clause.includes("*")) return null;
  const inner = /\{([^}]*)\}/.exec(clause)?.[1] ?? "";
  return inner
    .split(",")
    .map(
      (part) =>
        part
          .trim()
          .replace(/^type\s+/, "")
          .split(/\s+as\s+/)[0] as string,
    )
    .filter(Boolean);
}

const program = sourcesIn("cli", "src", "storage");
const edges = program.flatMap(({ path, imports }) => imports.map(({ target }) => ({ path, target })));
const told = (faults: { path: string; target: string }[]) => faults.map(({ path, target }) => `${path} → ${target}`);

const floorOf = (path: string) => {
  const floor = FLOORS.findIndex((rooms) => rooms.some((room) => path.startsWith(room)));
  if (floor === -1) throw new Error(`${path} stands on no floor; give it one in this test.`);
  return floor;
};
const resourceOf = (path: string) => /^src\/resources\/([^/]+)\//.exec(path)?.[1];

describe("imports", () => {
  test("are found, or the rest would hold of nothing", () => {
    expect(edges.length).toBeGreaterThan(200);
    expect(edges).toContainEqual({ path: "cli/program.ts", target: "cli/serve.ts" });
    expect(edges).toContainEqual({ path: "src/routes.ts", target: "src/app.ts" });
    const paths = new Set(program.map(({ path }) => path));
    expect(edges.filter(({ target }) => !paths.has(target))).toEqual([]);
  });

  test("go down", () => {
    expect(told(edges.filter(({ path, target }) => floorOf(target) < floorOf(path)))).toEqual([]);
  });

  test("of the narrow rooms go nowhere else", () => {
    for (const [room, allowed] of Object.entries(NARROW)) {
      const out = edges.filter(({ path, target }) => path.startsWith(room) && !target.startsWith(room));
      expect(told(out.filter(({ target }) => !allowed.some((each) => target.startsWith(each)))), room).toEqual([]);
    }
  });

  test("between resources follow their order", () => {
    const names = new Set(program.map(({ path }) => resourceOf(path)).filter((name) => name !== undefined));
    expect([...names].filter((name) => !RESOURCES.includes(name))).toEqual([]);
    const later = edges.filter(({ path, target }) => {
      const [from, to] = [resourceOf(path), resourceOf(target)];
      return from && to && RESOURCES.indexOf(to) > RESOURCES.indexOf(from);
    });
    expect(told(later)).toEqual([]);
  });

  test("form no circle", () => {
    const below = Map.groupBy(edges, ({ path }) => path);
    const done = new Set<string>();
    const walk = (path: string, trail: string[]): void => {
      if (trail.includes(path)) throw new Error([...trail.slice(trail.indexOf(path)), path].join(" → "));
      if (done.has(path)) return;
      for (const { target } of below.get(path) ?? []) walk(target, [...trail, path]);
      done.add(path);
    };
    for (const { path } of program) walk(path, []);
  });
});

describe("files", () => {
  test(`have at most ${MAX_LINES} lines`, () => {
    const all = [...program, ...sourcesIn("scripts", "test")];
    const long = all.map(({ path, text }) => ({ path, lines: text.split("\n").length - 1 }));
    expect(long.filter(({ lines }) => lines > MAX_LINES)).toEqual([]);
  });

  test("log through the log, and print in cli/print.ts", () => {
    expect(program.filter(({ text }) => /\bconsole\./.test(text)).map(({ path }) => path)).toEqual([]);
  });

  test("hold no value that nobody uses", () => {
    const users = [...program, ...sourcesIn("scripts", "test")];
    const used = Map.groupBy(
      users.flatMap(({ imports }) => imports),
      ({ target }) => target,
    );
    // The build names a file to its bundler as text.
    const scripts = users.filter(({ path }) => path.startsWith("scripts/"));
    const unused = program.flatMap(({ path, text }) => {
      const wanted = used.get(path) ?? [];
      if (wanted.some(({ names }) => names === null)) return [];
      const names = new Set(wanted.flatMap(({ names }) => names));
      return [...text.matchAll(/^export (?:async )?(?:const|function|class) (\w+)/gm)]
        .map(([, name]) => name as string)
        .filter((name) => !names.has(name) && text.split(new RegExp(`\\b${name}\\b`)).length === 2)
        .filter((name) => !scripts.some((script) => script.text.includes(name)))
        .map((name) => `${path}: ${name}`);
    });
    expect(unused).toEqual([]);
  });
});
