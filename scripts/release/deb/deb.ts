import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import type { Arch } from "#scripts/build/base.ts";
import { own, paths } from "#scripts/build/paths.ts";
import { run } from "#scripts/build/run.ts";
import { debianArch } from "#scripts/debian/packages.ts";
import { releaseTime } from "../time.ts";

/** What Node.js and libSQL need at least; test/suites/release/deb.test.ts compares it with their symbols. */
const DEPENDS = "adduser, libc6 (>= 2.28), libgcc-s1, libstdc++6 (>= 9)";
const SETTINGS = "etc/vodbox/vodbox.env";

/**
 * Writes the Debian package of `executable`: program, systemd unit and a file of settings. Its version is `version`, the
 * release's by default, and `level` that of gzip. Needs dpkg-deb.
 */
export async function writeDeb(
  arch: Arch,
  executable: string,
  result: string,
  { version = own.version, level = 9 }: { version?: string; level?: number } = {},
): Promise<void> {
  mkdirSync(paths.work, { recursive: true });
  const root = mkdtempSync(join(paths.work, "deb-"));
  const put = (path: string, content: string | Buffer, mode = 0o644) => {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), content);
    chmodSync(join(root, path), mode);
  };
  const template = (name: string) => readFileSync(join(import.meta.dirname, name), "utf8");
  try {
    chmodSync(root, 0o755);
    mkdirSync(join(root, "usr/bin"), { recursive: true });
    copyFileSync(executable, join(root, "usr/bin/vodbox"));
    chmodSync(join(root, "usr/bin/vodbox"), 0o755);
    put("usr/lib/systemd/system/vodbox.service", unit());
    // Settings may be secrets; systemd reads them as root.
    put(SETTINGS, template("vodbox.env"), 0o600);
    put("usr/share/doc/vodbox/copyright", copyright(template("copyright")));
    put("usr/share/doc/vodbox/licences.gz", gzipSync(readFileSync(join(paths.work, "licences.txt")), { level: 9 }));
    put("DEBIAN/control", control(arch, version, statSync(executable).size));
    put("DEBIAN/conffiles", `/${SETTINGS}\n`);
    for (const name of ["postinst", "prerm", "postrm"]) put(`DEBIAN/${name}`, template(name), 0o755);
    const env = { ...process.env, SOURCE_DATE_EPOCH: String(releaseTime().getTime() / 1000) };
    // gzip: most of the program is compressed already, and xz would take a minute to save a fifth.
    await run("dpkg-deb", ["--root-owner-group", "-Zgzip", `-z${level}`, "--build", root, result], { env });
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

function unit(): string {
  const settings = "EnvironmentFile=-/etc/vodbox.env";
  const source = readFileSync(join(paths.root, "scripts/vodbox.service"), "utf8");
  if (!source.includes(settings)) throw new Error(`scripts/vodbox.service has no line ${settings}.`);
  return source.replace(settings, `EnvironmentFile=-/${SETTINGS}`).replace('"@PREFIX@/bin/vodbox"', "/usr/bin/vodbox");
}

const copyright = (template: string) => {
  const lines = readFileSync(join(paths.root, "LICENSE"), "utf8").trim().split("\n");
  return template.replace("@LICENSE@", () => lines.map((line) => ` ${line.trim() || "."}`).join("\n"));
};

const control = (arch: Arch, version: string, bytes: number) => `Package: vodbox
Version: ${version}
Architecture: ${debianArch(arch)}
Maintainer: The vodbox authors <vodbox@localhost>
Section: video
Priority: optional
Installed-Size: ${Math.ceil(bytes / 1024)}
Depends: ${DEPENDS}
Description: complete video platform in one executable
 A REST API for direct uploads, transcoding to HLS and DASH, signed playback,
 an embeddable player, subtitles, webhooks, analytics and usage billing, for
 any number of tenants.
`;
