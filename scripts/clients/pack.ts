import { cpSync, existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { withLock } from "../build/cache.ts";
import { own, paths } from "../build/paths.ts";
import { run } from "../build/run.ts";
import { generateClient } from "./generate.ts";

/** The npm packages of src/clients, and the files generated from the OpenAPI document that they contain. */
const PACKAGES = [
  { folder: "typescript", file: "vodbox-client", generated: ["api.d.ts", "methods.ts", "operations.ts"] },
  { folder: "react", file: "vodbox-react", generated: [] },
  { folder: "vue", file: "vodbox-vue", generated: [] },
] as const;
type Package = (typeof PACKAGES)[number];

/** What the components for React and Vue have in common; each package contains it. */
const PLAYER = "player";

/** Writes `vodbox-client-<version>.tgz` and the like to `out`; returns their paths. */
export const packClients = (out: string): Promise<string[]> =>
  // A release and a test may do so at the same time, in the same working directory.
  withLock(join(paths.root, "build/clients/lock"), async () => {
    await generateClient();
    mkdirSync(out, { recursive: true });
    const files: string[] = [];
    for (const each of PACKAGES) files.push(await pack(each, out));
    return files;
  });

async function pack({ folder, file, generated }: Package, out: string): Promise<string> {
  const source = join(paths.root, "src/clients", folder);
  const work = join(paths.root, "build/clients", folder);
  rmSync(work, { recursive: true, force: true });
  const sources = join(work, "src");
  for (const name of globSync("**/*.ts", { cwd: source })) copyCode(join(source, name), join(sources, name));
  if (folder !== "typescript")
    for (const name of globSync("*.ts", { cwd: join(source, "..", PLAYER) }))
      copyCode(join(source, "..", PLAYER, name), join(sources, PLAYER, name));
  for (const name of generated) copyCode(join(paths.root, "build/client", name), join(sources, "generated", name));
  await compile(work, folder === "typescript" ? ["node"] : []);
  const manifest = JSON.parse(readFileSync(join(source, "package.json"), "utf8"));
  writeFileSync(join(work, "package.json"), `${JSON.stringify({ ...manifest, version: own.version }, null, 2)}\n`);
  cpSync(join(source, "README.md"), join(work, "README.md"));
  cpSync(join(paths.root, "LICENSE"), join(work, "LICENSE"));
  await run("npm", ["pack", work, "--silent", "--ignore-scripts", "--pack-destination", out]);
  const packed = join(out, `${file}-${own.version}.tgz`);
  if (!existsSync(packed)) throw new Error(`npm pack did not write ${packed}.`);
  return packed;
}

/** In the package the generated files are in `generated/`, next to the sources. */
function copyCode(from: string, to: string): void {
  const text = readFileSync(from, "utf8")
    .replaceAll(/"((?:\.\.\/)*?)\.\.\/\.\.\/\.\.\/build\/client\//g, (_, up) => `"${up || "./"}generated/`)
    .replaceAll('"../../src/clients/typescript/', '"../')
    .replaceAll(`"../${PLAYER}/`, `"./${PLAYER}/`);
  mkdirSync(join(to, ".."), { recursive: true });
  writeFileSync(to, text);
}

async function compile(work: string, types: string[]): Promise<void> {
  const compilerOptions = {
    rootDir: "src",
    outDir: "dist",
    noEmit: false,
    declaration: true,
    rewriteRelativeImportExtensions: true,
    types,
    skipLibCheck: false,
    stripInternal: true,
  };
  const config = { extends: join(paths.root, "tsconfig.clients.json"), compilerOptions, include: ["src"] };
  writeFileSync(join(work, "tsconfig.json"), JSON.stringify(config));
  await run(join(paths.modules, ".bin/tsc"), ["-p", work]);
  for (const name of globSync("**/*.d.ts", { cwd: join(work, "src") }))
    cpSync(join(work, "src", name), join(work, "dist", name));
  // The compiler leaves the extensions of imports in declarations as they are.
  for (const name of globSync("dist/**/*.d.ts", { cwd: work })) {
    const path = join(work, name);
    writeFileSync(path, readFileSync(path, "utf8").replaceAll(/(["'])(\.{1,2}\/[^"']+?)(?:\.d)?\.ts\1/g, "$1$2.js$1"));
  }
}
