import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { describe, expect, test } from "vitest";

const root = join(import.meta.dirname, "../../..");
const MAX_LINES = 400;

/**
 * From top to bottom: a file imports from its own layer or a lower one. The directories in one line are one layer. The
 * files that assemble the program (routes, open, serve …) are one layer above everything that they assemble.
 */
const FLOORS: readonly (readonly string[])[] = [
  ["cli/"],
  [
    "src/serve.ts",
    "src/scheduled-tasks.ts",
    "src/cross-validate.ts",
    "src/platform/cluster/",
    "src/listen.ts",
    "src/tls.ts",
    "src/live-ingest.ts",
    "src/local-workers.ts",
    "src/open.ts",
    "src/routes.ts",
    "src/log.ts",
    "src/systemd.ts",
  ],
  ["src/worker/"],
  ["src/web/"],
  ["src/features/"],
  ["src/platform/parsing/"],
  ["src/live/"],
  ["src/platform/http/", "src/platform/events/", "src/media/", "src/platform/outbound/", "src/protocol/"],
  ["src/platform/limits/", "src/platform/scheduled-tasks/"],
  ["src/app.ts", "src/platform/config/"],
  ["storage/"],
  ["src/model/", "src/lib/"],
  ["src/clients/"],
];

/** Written by `npm run client` from the OpenAPI document, for the clients only. */
const GENERATED = "build/client/";

/** Directories outside the layers: what they may import, except themselves. */
const NARROW: Record<string, readonly string[]> = {
  // It speaks HTTP to the server and never opens the database.
  "src/worker/": ["src/media/", "src/platform/outbound/transcribe/", "src/protocol/", "src/model/", "src/lib/"],
  // The worker runs it on other machines than the server.
  "src/media/": ["src/protocol/", "src/model/", "src/lib/"],
  // A process of its own that reads from strangers: it opens neither the database nor the objects.
  "src/live/": [
    "src/media/",
    "src/protocol/",
    "src/model/",
    "src/lib/",
    // It connects to destinations that tenants choose, by the rules for all of them.
    "src/lib/network/destination.ts",
    "src/lib/network/guard.ts",
    "src/lib/network/resolve.ts",
  ],
  // The encoding specification and everything that follows it imports the codecs.
  "src/lib/codecs/": ["src/lib/codecs/encoders.ts", "src/lib/codecs/hdr.ts"],
  // Server, worker and clients may have different versions, and share only these messages.
  "src/protocol/": ["src/lib/codecs/", "src/model/", "src/lib/"],
  "storage/": ["src/model/", "src/lib/"],
  // It runs in the browser, and reads WebVTT as the server does.
  "src/web/client/": ["src/lib/subtitles/", "src/lib/base/"],
  // They are packages of their own, which customers install.
  "src/clients/": [],
  // Its editor of subtitles reads WebVTT as the server does; it offers what the API accepts.
  "src/web/console/": ["src/clients/", "src/lib/subtitles/", "src/lib/base/", "src/model/join-limits.ts"],
};

/** Each imports only those before it. */
const FEATURES =
  "encoding-profiles tenants credentials playback-restrictions mail users notifications activity assets collections subtitles transcoding uploads tracks search static-renditions clips shares playback webhooks event-stream analytics billing batch-uploads live operations mcp mux".split(
    " ",
  );

type Source = { path: string; text: string; imports: Import[] };
/** `names` is null when everything may be used: a namespace, a dynamic import. */
type Import = { target: string; names: string[] | null };

const sourcesIn = (...folders: string[]): Source[] =>
  folders
    .flatMap((folder) => readdirSync(join(root, folder), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => {
      const text = readFileSync(path, "utf8");
      return { path: relative(root, path), text, imports: importsOf(path, text) };
    });

const STATIC = /^(?:import|export)\s+(?:type\s+)?(?:([^;"']*?)\s+from\s+)?["']([.#][^"']+)["']/gm;
const DYNAMIC = /\bimport\(\s*["']([.#][^"']+)["']/g;

function importsOf(path: string, text: string): Import[] {
  const found: Import[] = [];
  const add = (specifier: string, names: string[] | null) =>
    found.push({ target: relative(root, locate(path, specifier)), names });
  for (const [, clause = "", specifier = ""] of text.matchAll(STATIC))
    if (!specifier.endsWith(".css")) add(specifier, namesIn(clause));
  for (const [, specifier = ""] of text.matchAll(DYNAMIC)) add(specifier, null);
  return found;
}

/** `imports` of package.json: the longest key that matches. */
const ALIASES = Object.entries(
  (JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { imports: Record<string, string> }).imports,
).sort(([a], [b]) => b.length - a.length);

function locate(path: string, specifier: string): string {
  if (specifier.startsWith(".")) return join(dirname(path), specifier);
  const [key = "", target = ""] =
    ALIASES.find(([key]) => specifier === key || (key.endsWith("*") && specifier.startsWith(key.slice(0, -1)))) ?? [];
  return join(root, target.replace("*", specifier.slice(key.length - 1)));
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
const all = program.flatMap(({ path, imports }) => imports.map(({ target }) => ({ path, target })));
const [edges, generated] = [
  all.filter(({ target }) => !target.startsWith(GENERATED)),
  all.filter(({ target }) => target.startsWith(GENERATED)),
];
const told = (faults: { path: string; target: string }[]) => faults.map(({ path, target }) => `${path} → ${target}`);

const floorOf = (path: string) => {
  const floor = FLOORS.findIndex((rooms) => rooms.some((room) => path.startsWith(room)));
  if (floor === -1) throw new Error(`${path} is in no layer; add it to one in this test.`);
  return floor;
};
const featureOf = (path: string) => /^src\/features\/([^/]+)\//.exec(path)?.[1];

describe("imports", () => {
  test("are found at all", () => {
    expect(edges.length).toBeGreaterThan(200);
    expect(edges).toContainEqual({ path: "cli/program.ts", target: "cli/serve.ts" });
    expect(edges).toContainEqual({ path: "src/routes.ts", target: "src/app.ts" });
    const paths = new Set(program.map(({ path }) => path));
    expect(edges.filter(({ target }) => !paths.has(target))).toEqual([]);
  });

  test("go down", () => {
    expect(told(edges.filter(({ path, target }) => floorOf(target) < floorOf(path)))).toEqual([]);
  });

  test("of directories outside the layers are limited", () => {
    for (const [room, allowed] of Object.entries(NARROW)) {
      const out = edges.filter(({ path, target }) => path.startsWith(room) && !target.startsWith(room));
      expect(told(out.filter(({ target }) => !allowed.some((each) => target.startsWith(each)))), room).toEqual([]);
    }
  });

  test("of generated files are in the TypeScript client and the console", () => {
    expect(generated.length).toBeGreaterThan(0);
    expect(told(generated.filter(({ path }) => !/^src\/(clients\/typescript|web\/console)\//.test(path)))).toEqual([]);
  });

  test("between features follow their order", () => {
    const names = new Set(program.map(({ path }) => featureOf(path)).filter((name) => name !== undefined));
    expect([...names].filter((name) => !FEATURES.includes(name))).toEqual([]);
    const later = edges.filter(({ path, target }) => {
      const [from, to] = [featureOf(path), featureOf(target)];
      return from && to && FEATURES.indexOf(to) > FEATURES.indexOf(from);
    });
    expect(told(later)).toEqual([]);
  });

  test("form no cycle", () => {
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
  // After the imports.
  test(`have at most ${MAX_LINES} lines`, () => {
    const all = [...program, ...sourcesIn("scripts", "test")];
    const long = all.map(({ path, text }) => ({ path, lines: text.replaceAll(STATIC, "").split("\n").length - 1 }));
    expect(long.filter(({ lines }) => lines > MAX_LINES)).toEqual([]);
  });

  test("log through the log, and print in cli/print.ts", () => {
    expect(
      program
        .filter(({ text }) => /\bconsole\.(log|debug|info|warn|error|table|trace)\b/.test(text))
        .map(({ path }) => path),
    ).toEqual([]);
  });

  test("export no unused value", () => {
    const users = [...program, ...sourcesIn("scripts", "test")];
    const used = Map.groupBy(
      users.flatMap(({ imports }) => imports),
      ({ target }) => target,
    );
    // The build passes the file name to its bundler as text.
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
