import { readFileSync } from "node:fs";
import { join } from "node:path";
import { build, type Plugin } from "esbuild";
import { paths } from "./paths.ts";

/** The line of libsql's loaders that looks for the native library in node_modules. */
const nativeLine = `return require(\`@libsql/\${target}\`);`;
const loader = join(paths.root, "src/lib/native.ts");
const embeddedLoad = `return require(${JSON.stringify(loader)}).loadNative("libsql.node");`;
const requireNative = /function requireNative\(\) \{[\s\S]*?\n\}\n/;

/**
 * Makes libsql load the library that the executable carries. The whole function goes: it asks the running system
 * which C library it has, and the executable has settled that. A libsql that looks different ends the build, since
 * the executable would otherwise only fail where there is no node_modules.
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

/** All of vodbox as one CommonJS file: Node's single executables start nothing else yet. */
export async function bundle(outfile: string): Promise<void> {
  await build({
    entryPoints: [join(paths.root, "cli/main.ts")],
    outfile,
    bundle: true,
    platform: "node",
    format: "cjs",
    target: "node24",
    minify: true,
    // Errors and logs name classes and functions.
    keepNames: true,
    // CommonJS has no import.meta; packages that ask where they lie get the executable.
    banner: { js: `const __vodbox_url = require("node:url").pathToFileURL(process.execPath).href;` },
    define: {
      "import.meta.url": "__vodbox_url",
      "import.meta.filename": "process.execPath",
      "process.env.NODE_ENV": '"production"',
    },
    // Notices of the bundled packages travel in the asset licences.txt.
    legalComments: "none",
    plugins: [libsqlInside],
    logLevel: "warning",
  });
}
