import { readFileSync } from "node:fs";
import { join } from "node:path";
import { own, paths } from "../build/paths.ts";

const BUILD = /^# build: [\s\S]*?^# end of build\n/m;
const USAGE = "usage: ./install.sh [--prefix DIR] [--demo] [--service]\n";
const COMMENT = /^# Builds vodbox[\s\S]*?(?=^set -eu)/m;

/**
 * The installer of a release: that of the checkout, except that it downloads the executable from `baseUrl` and verifies
 * its checksum, and with `publicKey` (of minisign, base64) also its signature. Without a base URL the operator has to name one. Throws when install.sh has changed too much.
 */
export function installer(baseUrl: string, publicKey = ""): string {
  // Both become part of a shell script.
  if (!/^(https?:\/\/[\w.:/~-]+)?$/.test(baseUrl))
    throw new Error(`${baseUrl} is not a URL that can be in install.sh.`);
  if (!/^([\w+/]{55}[\w+/=])?$/.test(publicKey)) throw new Error(`${publicKey} is no public key of minisign.`);
  const source = readFileSync(join(paths.root, "install.sh"), "utf8");
  if (!BUILD.test(source) || !source.includes(USAGE) || !COMMENT.test(source))
    throw new Error("install.sh no longer has the parts that scripts/release/installer.ts replaces.");
  const download = readFileSync(join(import.meta.dirname, "download.sh"), "utf8")
    .replaceAll("@VERSION@", () => own.version)
    .replace("@BASE_URL@", () => baseUrl)
    .replace("@PUBLIC_KEY@", () => publicKey)
    .replace("@UNIT@", () => readFileSync(join(paths.root, "scripts/vodbox.service"), "utf8").trimEnd());
  const comment = `# Downloads vodbox ${own.version}, verifies its ${publicKey ? "signature" : "checksum"} and installs it. Safe to run again.\n`;
  return source
    .replace(COMMENT, () => comment)
    .replace(
      USAGE,
      () =>
        `usage: install.sh [--from=URL] [--prefix DIR] [--demo] [--service]\n  --from=URL    where the files of the release are${baseUrl && `; default: ${baseUrl}`}\n`,
    )
    .replace(BUILD, () => download);
}
