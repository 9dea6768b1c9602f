import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Arch, nodeProgram, whisperVersion } from "../build/base.ts";
import { installedVersion, nodeVersion, own } from "../build/paths.ts";
import { run } from "../build/run.ts";
import type { Tools } from "../build/tools.ts";
import { shippedPackages } from "../licences.ts";
import { releaseTime } from "./time.ts";

type Component = {
  type: "application" | "library";
  "bom-ref": string;
  name: string;
  version: string;
  purl: string;
  licenses?: { expression: string }[];
  components?: Component[];
};

/** Licences of what ffmpeg is linked from, by Debian source package, as in docs/third-party.md. */
const LINKED_LICENCES: Record<string, string> = {
  ffmpeg: "GPL-2.0-or-later",
  x264: "GPL-2.0-or-later",
  x265: "GPL-2.0-or-later",
  "svt-av1": "BSD-3-Clause-Clear",
  dav1d: "BSD-2-Clause",
  aom: "BSD-2-Clause",
  libvpx: "BSD-3-Clause",
  opus: "BSD-3-Clause",
  libwebp: "BSD-3-Clause",
  zimg: "WTFPL",
  zlib: "Zlib",
  glibc: "LGPL-2.1-or-later",
  "gcc-12": "GPL-3.0-or-later WITH GCC-exception-3.1",
};

/** Names in `process.versions` that are numbers of interfaces or data, not components. */
const NOT_COMPONENTS = new Set(["node", "modules", "napi", "cldr", "tz", "unicode"]);

/**
 * The software bill of materials of one executable, in CycloneDX 1.6: everything that is embedded in it, with nested
 * components where a program contains others. `sha256` is that of the executable.
 */
export async function sbom(arch: Arch, tools: Tools, sha256: string): Promise<string> {
  const root: Component = component({
    type: "application",
    name: "vodbox",
    version: own.version,
    purl: `pkg:generic/vodbox@${own.version}?arch=${arch}`,
    licence: "MIT",
  });
  const components = [
    await nodeComponent(),
    libsqlComponent(),
    whisperComponent(arch),
    ...ffmpegComponents(tools),
    ...npmComponents(),
  ];
  const document = {
    $schema: "http://cyclonedx.org/schema/bom-1.6.schema.json",
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    serialNumber: `urn:uuid:${uuidOf(sha256)}`,
    version: 1,
    metadata: {
      timestamp: releaseTime().toISOString(),
      component: { ...root, hashes: [{ alg: "SHA-256", content: sha256 }] },
    },
    components,
    dependencies: [{ ref: root["bom-ref"], dependsOn: components.map((each) => each["bom-ref"]).sort() }],
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

type Described = Pick<Component, "name" | "version" | "purl"> & { type?: Component["type"]; licence?: string };

const component = ({ type = "library", name, version, purl, licence }: Described): Component => ({
  type,
  "bom-ref": purl,
  name,
  version,
  purl,
  ...(licence && { licenses: [{ expression: licence }] }),
});

async function nodeComponent(): Promise<Component> {
  // The shipped Node for this machine has the same components as that for another one.
  const program = await nodeProgram(process.arch as Arch);
  const versions = JSON.parse(await run(program, ["-p", "JSON.stringify(process.versions)"])) as Record<string, string>;
  const parts = Object.entries(versions)
    .filter(([name]) => !NOT_COMPONENTS.has(name))
    .map(([name, version]) => component({ name, version, purl: `pkg:generic/${name}@${encodeURIComponent(version)}` }));
  const purl = `pkg:generic/node@${nodeVersion}`;
  const node = component({ type: "application", name: "node", version: nodeVersion, purl, licence: "MIT" });
  return { ...node, components: parts };
}

function libsqlComponent(): Component {
  const version = installedVersion("libsql");
  // The native library; the JavaScript package of the same name is listed with the other packages.
  return component({ name: "libsql-native", version, purl: `pkg:cargo/libsql-js@${version}`, licence: "MIT" });
}

function whisperComponent(arch: Arch): Component {
  const name = `@fugood/node-whisper-linux-${arch}`;
  const purl = `pkg:npm/${name.replace("@", "%40")}@${whisperVersion}`;
  return component({ name, version: whisperVersion, purl, licence: "MIT" });
}

/** One component for each linked source package of Debian; empty for an ffmpeg that the builder supplies. */
function ffmpegComponents({ ffmpeg }: Tools): Component[] {
  const file = join(dirname(ffmpeg), "versions.txt");
  if (!existsSync(file)) return [];
  const rows = readFileSync(file, "utf8").trim().split("\n");
  // Its C++ runtime is the compiler's; ffmpeg's configuration records the compiler.
  const compiler = /gcc (\d+) \(Debian ([\w.+~-]+)\)/.exec(readFileSync(ffmpeg, "latin1"));
  if (compiler) rows.push(`gcc-${compiler[1]} ${compiler[2]}`);
  const [first, ...libraries] = rows.map((row) => {
    const [name = "", version = ""] = row.split(" ");
    const purl = `pkg:deb/debian/${name}@${encodeURIComponent(version)}?arch=source`;
    return component({ name, version, purl, licence: LINKED_LICENCES[name] });
  });
  return first ? [{ ...first, type: "application", components: libraries }] : [];
}

function npmComponents(): Component[] {
  return shippedPackages().map(({ name, version, licence }) => {
    const purl = `pkg:npm/${name.replace("@", "%40")}@${version}`;
    return component({ name, version, purl, licence: licence === "none named" ? undefined : licence });
  });
}

/** A UUID that depends only on the executable, in the form of version 8 (RFC 9562, 5.8). */
function uuidOf(sha256: string): string {
  const hex = createHash("sha256").update(`sbom ${sha256}`).digest("hex");
  const parts = [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `8${hex.slice(13, 16)}`,
    `8${hex.slice(17, 20)}`,
    hex.slice(20, 32),
  ];
  return parts.join("-");
}
