import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { describe, expect, test } from "vitest";

const root = join(import.meta.dirname, "../../..");
const names = (list: string) => list.split(" ");
/** After the imports. */

/** Each imports `base` and libraries before it. */
const LIBRARIES = names(
  "base tracing xml executable sandbox network codecs publishing mpegts srt rtmp isobmff subtitles closed-captions search manifests",
);

/** Each imports features before it. A group (credentials, operations) is one feature. */
const FEATURES = names(
  "encoding-profiles tenants credentials playback-restrictions mail users notifications activity assets collections subtitles transcoding uploads tracks search static-renditions clips shares playback webhooks event-stream analytics billing batch-uploads import-runs live operations mcp mux",
);

/**
 * From bottom to top, one layer each: a file imports from its own layer and from those before it, so no two folders import each
 * other. The files in one line assemble the program, and are one layer.
 */
const LAYERS: readonly (readonly string[])[] = [
  ...LIBRARIES.map((name) => [`src/lib/${name}/`]),
  // The words of the product: states, object keys, warnings.
  ["src/model/"],
  ["storage/objects/"],
  ["storage/cache/"],
  ["storage/db/"],
  ["storage/replica/"],
  ["src/protocol/"],
  ["src/media/"],
  ["src/live/"],
  ["src/platform/config/"],
  ["src/app.ts"],
  ["src/platform/limits/"],
  ["src/platform/scheduled-tasks/"],
  ["src/platform/events/"],
  ["src/platform/http/"],
  ["src/platform/parsing/"],
  ["src/platform/outbound/"],
  ["src/platform/cluster/"],
  ["src/worker/"],
  ...FEATURES.map((name) => [`src/features/${name}/`]),
  // Packages of their own, which the console contains.
  ["src/clients/"],
  ["src/web/"],
  [
    "src/cross-validate.ts",
    "src/listen.ts",
    "src/live-ingest.ts",
    "src/local-workers.ts",
    "src/log.ts",
    "src/open.ts",
    "src/otel.ts",
    "src/routes.ts",
    "src/scheduled-tasks.ts",
    "src/serve.ts",
    "src/systemd.ts",
    "src/tls.ts",
    "src/tracing.ts",
  ],
  ["cli/"],
];

/** Imports of a higher layer, as `from → to`. The list may only become shorter. */
const UPWARD: readonly string[] = [];

/** Written by `npm run client` from the OpenAPI document, for the clients only. */
const GENERATED = "build/client/";

/** Folders that may import less than what is below them: what they may import, except themselves. */
const NARROW: Record<string, readonly string[]> = {
  // It speaks HTTP to the server and never opens the database.
  "src/worker/": ["src/media/", "src/platform/outbound/transcribe/", "src/protocol/", "src/model/", "src/lib/"],
  // The worker runs it on other machines than the server.
  "src/media/": ["src/protocol/", "src/model/", "src/lib/"],
  // A process of its own that reads from strangers: it opens neither the database nor the objects.
  "src/live/": ["src/media/", "src/protocol/", "src/model/", "src/lib/"],
  // Server, worker and clients may have different versions, and share only these messages.
  "src/protocol/": ["src/model/", "src/lib/"],
  "storage/": ["src/model/", "src/lib/"],
  // It runs in the browser, and reads WebVTT as the server does.
  "src/web/client/": ["src/lib/base/web.ts", "src/lib/subtitles/web.ts"],
  // They are packages of their own, which customers install.
  "src/clients/": [],
  // Its editor of subtitles reads WebVTT as the server does; it offers what the API accepts.
  "src/web/console/": [
    "src/clients/",
    "src/lib/base/web.ts",
    "src/lib/subtitles/web.ts",
    "src/model/import-sources.ts",
    "src/model/join-limits.ts",
    "src/web/client/parts/copy-text.ts",
  ],
};

type Source = { path: string; text: string; imports: Import[] };
/** `names` is null when everything may be used: a namespace, a dynamic import. */
type Import = { specifier: string; target: string; names: string[] | null; isType: boolean };

const sourcesIn = (...folders: string[]): Source[] =>
  folders
    .flatMap((folder) => readdirSync(join(root, folder), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile() && /\.tsx?$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .map((path) => {
      const text = readFileSync(path, "utf8");
      return { path: relative(root, path), text, imports: importsOf(path, text) };
    });

const STATIC = /^(?:import|export)\s+(type\s+)?(?:([^;"']*?)\s+from\s+)?["']([.#][^"']+)["']/gm;
const DYNAMIC = /\bimport\(\s*["']([.#][^"']+)["']/g;

function importsOf(path: string, text: string): Import[] {
  const found: Import[] = [];
  const add = (specifier: string, names: string[] | null, isType = false) =>
    found.push({ specifier, target: relative(root, locate(path, specifier)), names, isType });
  for (const [, type, clause = "", specifier = ""] of text.matchAll(STATIC))
    if (!specifier.endsWith(".css")) add(specifier, namesIn(clause), type !== undefined);
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
const edges = all.filter(({ target }) => !target.startsWith(GENERATED));
const generated = all.filter(({ target }) => target.startsWith(GENERATED));
const shown = (imports: { path: string; target: string }[]) => imports.map(({ path, target }) => `${path} → ${target}`);

const layerOf = (path: string) => {
  const layer = LAYERS.findIndex((members) => members.some((member) => path.startsWith(member)));
  if (layer === -1) throw new Error(`${path} is in no layer; add its folder to LAYERS in this test.`);
  return layer;
};
const libraryOf = (path: string) => /^src\/lib\/([^/]+)\//.exec(path)?.[1];
const exportedBy = (imports: Import[]) => imports.flatMap(({ names }) => names ?? []);
/** An import into another area begins with `#`. */
const areaOf = (path: string) =>
  /^src\/(?:lib\/[^/]+|[^/]+)\//.exec(path)?.[0] ?? (path.startsWith("src/") ? "src/" : path.split("/", 1)[0]);

describe("imports", () => {
  test("are found at all", () => {
    expect(edges.length).toBeGreaterThan(200);
    expect(edges).toContainEqual({ path: "cli/program.ts", target: "cli/serve.ts" });
    expect(edges).toContainEqual({ path: "src/routes.ts", target: "src/app.ts" });
    const paths = new Set(program.map(({ path }) => path));
    expect(edges.filter(({ target }) => !paths.has(target))).toEqual([]);
  });

  test("go down", () => {
    const upward = edges.filter(({ path, target }) => layerOf(target) > layerOf(path));
    expect([...new Set(shown(upward))].sort()).toEqual([...UPWARD].sort());
  });

  test("into a library go through its entry point", () => {
    const past = edges.filter(({ path, target }) => {
      const library = libraryOf(target);
      return library && library !== libraryOf(path) && !/^src\/lib\/[^/]+\/(?:index|web)\.ts$/.test(target);
    });
    expect(shown(past)).toEqual([]);
  });

  test("of some folders are limited", () => {
    for (const [folder, allowed] of Object.entries(NARROW)) {
      const out = edges.filter(({ path, target }) => path.startsWith(folder) && !target.startsWith(folder));
      expect(shown(out.filter(({ target }) => !allowed.some((each) => target.startsWith(each)))), folder).toEqual([]);
    }
  });

  test("of generated files are in the TypeScript client and the console, and of types in admin commands", () => {
    expect(generated.length).toBeGreaterThan(0);
    expect(
      shown(generated.filter(({ path }) => !/^(src\/(clients\/typescript|web\/console)|cli\/admin)\//.test(path))),
    ).toEqual([]);
  });

  test("of other areas begin with #, and those of the same area climb at most one folder", () => {
    const climbing = [...program, ...sourcesIn("scripts", "test")]
      .filter(({ path }) => !path.startsWith("src/clients/"))
      .flatMap(({ path, imports }) => imports.map(({ target, specifier }) => ({ path, target, specifier })))
      .filter(({ specifier }) => specifier.startsWith("."))
      .filter(({ path, target, specifier }) => specifier.includes("../../") || areaOf(path) !== areaOf(target));
    expect(shown(climbing)).toEqual([]);
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

describe("libraries", () => {
  test("have a description and an entry point", () => {
    const folders = readdirSync(join(root, "src/lib"));
    expect(folders.sort()).toEqual([...LIBRARIES].sort());
    for (const name of folders)
      expect(readdirSync(join(root, "src/lib", name)), name).toEqual(expect.arrayContaining(["README.md", "index.ts"]));
  });

  test("export from their entry points only what is imported", () => {
    const imported = Map.groupBy(
      [...program, ...sourcesIn("scripts")].flatMap(({ imports }) => imports),
      ({ target }) => target,
    );
    const unused = program
      .filter(({ path }) => /^src\/lib\/[^/]+\/(?:index|web)\.ts$/.test(path))
      .flatMap(({ path, imports }) => {
        const used = new Set(imported.get(path)?.flatMap(({ names }) => names ?? exportedBy(imports)));
        return exportedBy(imports)
          .filter((name) => !used.has(name))
          .map((name) => `${path}: ${name}`);
      });
    expect(unused).toEqual([]);
  });

  test("base has at most 25 files", () => {
    expect(readdirSync(join(root, "src/lib/base")).length).toBeLessThanOrEqual(25);
  });

  test("have no module of Node.js behind their entry points for browsers", () => {
    const textOf = new Map(program.map(({ path, text }) => [path, text]));
    const values = program.flatMap(({ path, imports }) =>
      imports.filter(({ isType }) => !isType).map(({ target }) => ({ path, target })),
    );
    const reached = new Set(program.map(({ path }) => path).filter((path) => /^src\/lib\/[^/]+\/web\.ts$/.test(path)));
    for (const path of reached) for (const edge of values) if (edge.path === path) reached.add(edge.target);
    expect(reached.size).toBeGreaterThan(5);
    expect([...reached].filter((path) => /from "node:/.test(textOf.get(path) ?? ""))).toEqual([]);
  });
});

describe("files", () => {
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
