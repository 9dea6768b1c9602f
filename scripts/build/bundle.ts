import { readFileSync } from "node:fs";
import { join } from "node:path";
import { build, type Plugin } from "esbuild";
import { NOT_BUNDLED } from "../licences.ts";
import { paths } from "./paths.ts";

/** The line of libsql's loaders that looks for the native library in node_modules. */
const nativeLine = `return require(\`@libsql/\${target}\`);`;
const loader = join(paths.root, "src/lib/executable/native.ts");
const embeddedLoad = `return require(${JSON.stringify(loader)}).loadNative("libsql.node");`;
const requireNative = /function requireNative\(\) \{[\s\S]*?\n\}\n/;

/**
 * Makes libsql load the library in the executable. The whole function is replaced: it detects the C library of the
 * running system, which the executable has fixed. An unknown version of libsql fails the build, because the executable
 * would fail only where there is no node_modules.
 */
const libsqlInside: Plugin = {
  name: "libsql-inside",
  setup(builder) {
    builder.onLoad({ filter: /node_modules\/libsql\/(index|promise)\.js$/ }, ({ path }) => {
      const source = readFileSync(path, "utf8");
      if (!source.includes(nativeLine) || !requireNative.test(source)) {
        return { errors: [{ text: `${path} no longer loads its library as expected: adapt scripts/build/bundle.ts` }] };
      }
      return {
        contents: source.replace(requireNative, `function requireNative() { ${embeddedLoad} }\n`),
        loader: "js",
      };
    });
  },
};

/** Fails the build for packages whose licences do not allow them in the executable. */
const withoutExcluded: Plugin = {
  name: "without-excluded",
  setup(builder) {
    builder.onResolve({ filter: new RegExp(`^(${NOT_BUNDLED.join("|")})(/|$)`) }, ({ path, importer }) => ({
      errors: [{ text: `${importer} imports ${path}, which must not be in the executable (scripts/licences.ts)` }],
    }));
  },
};

/** All of vodbox as one CommonJS file: Node's single executables support no ES modules yet. */
export async function bundle(outfile: string): Promise<void> {
  await build({
    entryPoints: [join(paths.root, "cli/main.ts")],
    outfile,
    bundle: true,
    platform: "node",
    format: "cjs",
    target: "node24",
    // A package that imports a module of Node.js on demand (the exporter of OpenTelemetry) would use the loader of ES modules,
    // about which Node.js warns in an executable.
    supported: { "dynamic-import": false },
    minifySyntax: true,
    minifyWhitespace: true,
    // Errors and logs contain class and function names, so identifiers stay. With `keepNames` each closure would be named
    // whenever it is created, which takes 7 % of a request.
    minifyIdentifiers: false,
    // CommonJS has no import.meta; packages that ask for their location get the executable's.
    banner: { js: `const __vodbox_url = require("node:url").pathToFileURL(process.execPath).href;` },
    define: {
      "import.meta.url": "__vodbox_url",
      "import.meta.filename": "process.execPath",
      "process.env.NODE_ENV": '"production"',
    },
    // Notices of the bundled packages are in the asset licences.txt.
    legalComments: "none",
    plugins: [libsqlInside, withoutExcluded],
    logLevel: "warning",
  });
}
