import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { paths } from "./build/paths.ts";

/** Licences that may be shipped together with the GPL's ffmpeg. Any other one needs a decision. */
const allowed = new Set([
  "MIT",
  "MIT-0",
  "ISC",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "0BSD",
  "Apache-2.0",
  "BlueOak-1.0.0",
  "Unlicense",
  "CC0-1.0",
]);

/** Development packages whose code is shipped, because it runs in browsers. */
const shippedToBrowsers = [
  ...["hls.js", "lucide", "media-chrome", "minisearch", "preact", "preact-iso", "uplot"],
  "@scalar/fastify-api-reference",
];

/**
 * What Scalar's script for browsers contains: its package ships it as one file, so the lock file does not know. Made from
 * the inputs of a bundle of @scalar/api-reference 1.72.1, the newest one that was available; to be made again with each new
 * version of the script.
 */
const scalar = JSON.parse(readFileSync(join(paths.root, "scripts/scalar-packages.json"), "utf8")) as {
  version: string;
  packages: { name: string; licence: string; copyright: string }[];
};

/** Packages that others need only for their type declarations. */
const onlyTypes = /node_modules\/(@types\/.+|undici-types|typescript)$/;

/** Packages that a dependency names, but that the modules which are bundled do not import: the build fails if one does. */
export const NOT_BUNDLED = ["mediabunny"];

type LockEntry = { version: string; dev?: boolean; optional?: boolean; dependencies?: Record<string, string> };
export type Shipped = { name: string; version: string; licence: string; folder: string };

/**
 * Every package that the executable may contain: the closure of `dependencies` without optional ones (native variants).
 */
export function shippedPackages(): Shipped[] {
  const lock = JSON.parse(readFileSync(join(paths.root, "package-lock.json"), "utf8")) as {
    packages: Record<string, LockEntry>;
  };
  const keys = Object.entries(lock.packages)
    .filter(([key, { dev, optional }]) => key && !dev && !optional && !onlyTypes.test(key))
    .filter(([key]) => !NOT_BUNDLED.some((name) => key.endsWith(`node_modules/${name}`)))
    .map(([key]) => key);
  const browser = shippedToBrowsers.map((name) => `node_modules/${name}`);
  return [...keys, ...browser]
    .map((key) => {
      const folder = join(paths.root, key);
      const manifest = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
        license?: string;
        version: string;
      };
      const name = key.slice(key.lastIndexOf("node_modules/") + "node_modules/".length);
      return { name, version: manifest.version, licence: manifest.license ?? "none named", folder };
    })
    .sort((a, b) => a.name.localeCompare(b.name, "en") || a.version.localeCompare(b.version, "en"))
    .filter((one, index, all) => one.name !== all[index - 1]?.name || one.version !== all[index - 1]?.version);
}

/** `(MIT OR Apache-2.0)` is allowed when one of them is; `MIT AND X` only when both are. */
export function isAllowed(licence: string): boolean {
  const alternatives = licence.replace(/[()]/g, "").split(" OR ");
  return alternatives.some((one) => one.split(" AND ").every((part) => allowed.has(part.trim())));
}

/**
 * The notices that licences require, as an asset of the executable. `others` are of components that are not from npm.
 */
export function notices(others: Record<string, string>): string {
  const inScalar = scalar.packages.map(({ name, licence, copyright }) => `${name} (${licence}) ${copyright}`.trim());
  return joined([
    ...Object.entries(others),
    ...shippedPackages().map(noticeOf),
    ["Contained in @scalar/fastify-api-reference", inScalar.join("\n")],
  ]);
}

/** The notices of some packages. */
export const noticesOf = (packages: readonly Shipped[]): string => joined(packages.map(noticeOf));

function noticeOf({ name, version, licence, folder }: Shipped): [title: string, text: string] {
  const file = readdirSync(folder).find((each) => /^(licen[cs]e|copying)/i.test(each));
  const text = file ? readFileSync(join(folder, file), "utf8").trim() : `Licence: ${licence}`;
  return [`${name} ${version}`, text];
}

const joined = (notices: [title: string, text: string][]) =>
  notices.map(([title, text]) => `${title}\n\n${text}\n`).join(`\n${"-".repeat(80)}\n\n`);

const begin = "<!-- packages: npm run licences -->";
const end = "<!-- end of packages -->";
export const document = join(paths.root, "docs/third-party.md");

/** A list with one line for each licence: `- MIT: a 1.0, b 2.0`. */
const byLicence = (packages: { licence: string; title: string }[]): string =>
  [...Map.groupBy(packages, ({ licence }) => licence)]
    .map(([licence, each]) => `- ${licence}: ${each.map(({ title }) => title).join(", ")}`)
    .join("\n");

/** The expected content of docs/third-party.md. Throws for a licence that is not allowed. */
export function currentDocument(): string {
  const packages = shippedPackages();
  const reference = packages.find(({ name }) => name === "@scalar/fastify-api-reference");
  if (reference?.version !== scalar.version)
    throw new Error(
      `scripts/scalar-packages.json lists the packages of version ${scalar.version}. Make the list again.`,
    );
  const strange = [...packages, ...scalar.packages].filter(({ licence }) => !isAllowed(licence));
  if (strange.length > 0) {
    const list = strange.map(({ name, licence }) => `${name} (${licence})`).join(", ");
    throw new Error(
      `Licences that are not on the list of allowed ones: ${list}. Replace the package, or add to scripts/licences.ts.`,
    );
  }
  const listed = byLicence(packages.map(({ name, version, licence }) => ({ licence, title: `${name} ${version}` })));
  const licences = [...new Set(scalar.packages.map(({ licence }) => licence))].join(", ");
  const inScalar = `The script in @scalar/fastify-api-reference contains ${scalar.packages.length} further packages (${licences}), which \`licences.txt\` names.`;
  const text = existsSync(document) ? readFileSync(document, "utf8") : `${begin}\n${end}\n`;
  return `${text.slice(0, text.indexOf(begin))}${begin}\n\n${listed}\n\n${inScalar}\n\n${text.slice(text.indexOf(end))}`;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) writeFileSync(document, currentDocument());
