import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import type { Arch } from "#scripts/build/base.ts";
import { type Unpacked, unpackPackages } from "#scripts/debian/packages.ts";
import type { Entry } from "./layer.ts";

/** The image's user. It is not a user of any distribution. */
export const USER = 65532;
export const DATA = "var/lib/vodbox";
export const CACHE = "var/cache/vodbox";

/** Libraries that Node.js and libSQL are linked with, and what they load for name resolution. */
const LIBRARIES = [
  ...["ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1", "libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0"],
  ...["libresolv.so.2", "librt.so.1", "libnss_dns.so.2", "libnss_files.so.2", "libgcc_s.so.1"],
];
const CERTIFICATES = "usr/share/ca-certificates/mozilla";

/**
 * What the executable needs from a system, from Debian's current packages: the C and C++ libraries, certificate
 * authorities, and a user. There is no shell and no package manager.
 */
export async function baseEntries(arch: Arch, work: string): Promise<Entry[]> {
  const root = join(work, `base-${arch}`);
  const names = ["base-files", "ca-certificates", "libc6", "libgcc-s1", "libstdc++6"];
  const packages = await unpackPackages(names, arch, { work, target: root });
  const triplet = { x64: "x86_64-linux-gnu", arm64: "aarch64-linux-gnu" }[arch];
  return [
    ...copied(root, `lib/${triplet}`, (name) => LIBRARIES.includes(name)),
    ...copied(root, `usr/lib/${triplet}`, (name) => name.startsWith("libstdc++.so.6")),
    // The path that programs name as their loader.
    ...copied(root, { x64: "lib64", arm64: "lib" }[arch], (name) => name.startsWith("ld-linux")),
    ...copied(root, "usr/lib", (name) => name === "os-release"),
    ...packages.flatMap((each) => packageEntries(root, each)),
    { kind: "link", path: "etc/os-release", target: "../usr/lib/os-release" },
    { kind: "text", path: "etc/ssl/certs/ca-certificates.crt", text: certificates(root) },
    { kind: "text", path: "etc/nsswitch.conf", text: "hosts: files dns\n" },
    { kind: "text", path: "etc/passwd", text: `root:x:0:0::/:\nvodbox:x:${USER}:${USER}::/${DATA}:\n` },
    { kind: "text", path: "etc/group", text: `root:x:0:\nvodbox:x:${USER}:\n` },
    { kind: "folder", path: "tmp", mode: 0o1777 },
    { kind: "folder", path: DATA, mode: 0o700, owner: USER },
    { kind: "folder", path: CACHE, mode: 0o700, owner: USER },
    // Mount points of a container.
    ...["dev", "proc", "sys"].map((path): Entry => ({ kind: "folder", path })),
  ];
}

/** Licence, and a record by which scanners of images find the package and its version. */
function packageEntries(root: string, { name, control }: Unpacked): Entry[] {
  const record: Entry = { kind: "text", path: `var/lib/dpkg/status.d/${name}`, text: `${control}\n` };
  return [record, ...copied(root, `usr/share/doc/${name}`, (file) => file === "copyright")];
}

/** Files and links of a directory below `root`. A directory that does not exist has none. */
function copied(root: string, folder: string, isWanted: (name: string) => boolean): Entry[] {
  if (!lstatSync(join(root, folder), { throwIfNoEntry: false })?.isDirectory()) return [];
  return readdirSync(join(root, folder))
    .filter(isWanted)
    .map((name): Entry => {
      const path = `${folder}/${name}`;
      const from = join(root, path);
      const info = lstatSync(from);
      if (info.isSymbolicLink()) return { kind: "link", path, target: readlinkSync(from) };
      return { kind: "file", path, from, mode: info.mode & 0o777 };
    });
}

function certificates(root: string): string {
  const folder = join(root, CERTIFICATES);
  const names = readdirSync(folder).filter((name) => name.endsWith(".crt"));
  return names
    .sort()
    .map((name) => readFileSync(join(folder, name), "utf8"))
    .join("");
}
