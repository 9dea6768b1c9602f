import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Arch } from "../build/base.ts";
import { own, paths } from "../build/paths.ts";
import { run } from "../build/run.ts";
import type { Tools } from "../build/tools.ts";
import { CONFIGURATION, VERSIONS } from "../ffmpeg/cached.ts";
import { ffmpegPackage, PACKAGE_FILES } from "../ffmpeg/packaged.ts";

export const ffmpegPackageFile = (arch: Arch): string => `vodbox-ffmpeg-linux-${arch}-${own.version}.tgz`;

/** Whether programs are a build of ours, of which the sources are known. */
const isOurs = ({ ffmpeg, stage }: Tools) => stage !== undefined && existsSync(join(dirname(ffmpeg), VERSIONS));

/**
 * Writes the npm package with our ffmpeg to `out`: programs, licences, the versions of all sources, and the offer of the sources
 * that the GPL requires. Programs that are not ours are left out.
 */
export async function writeFfmpegPackage(arch: Arch, tools: Tools, out: string): Promise<void> {
  if (!isOurs(tools)) return;
  const build = dirname(tools.ffmpeg);
  const work = join(paths.root, `build/ffmpeg-package-${arch}`);
  rmSync(work, { recursive: true, force: true });
  mkdirSync(work, { recursive: true });
  const read = (name: string) => readFileSync(join(build, name), "utf8").trim();
  // ffprobe is the same program.
  const files = readdirSync(build).filter((name) => name !== "ffprobe");
  for (const name of files) copyFileSync(join(build, name), join(work, name));
  const manifest = {
    name: ffmpegPackage(arch),
    version: own.version,
    description: `ffmpeg and ffprobe of vodbox for Linux on ${arch}, for its build.`,
    license: "GPL-2.0-or-later",
    os: ["linux"],
    cpu: [arch],
    files,
    vodbox: { build: basename(build), stage: tools.stage },
  };
  const [packageJson, readme] = PACKAGE_FILES as [string, string];
  writeFileSync(join(work, packageJson), `${JSON.stringify(manifest, null, 2)}\n`);
  writeFileSync(join(work, readme), readmeOf(arch, read(VERSIONS), read(CONFIGURATION)));
  await run("npm", ["pack", work, "--silent", "--ignore-scripts", "--pack-destination", out]);
}

const readmeOf = (arch: Arch, versions: string, configuration: string) => `# ${ffmpegPackage(arch)}

The ffmpeg of vodbox ${own.version} for Linux on ${arch}: one program that is ffmpeg or ffprobe, depending on the name that it is called by. A build of
vodbox uses it in place of compiling one.

## Licence and source

It is free software under the GNU General Public License, version 2 or later (COPYING.GPLv2), and contains the libraries that are listed below under
their own licences. It comes without any warranty.

The corresponding source is that of these source packages of Debian, without changes, and the scripts in \`scripts/ffmpeg\` of vodbox ${own.version}, which
control the compilation and contain the file that is added:

\`\`\`text
${versions}
\`\`\`

\`apt-get source NAME=VERSION\` fetches each from Debian; <https://snapshot.debian.org> keeps old versions. The publisher of this package offers, valid for
at least three years, to give any third party a complete machine-readable copy of that source on a medium customarily used for software
interchange, for no more than the cost of physically performing the distribution.

Arguments of \`configure\`:

\`\`\`text
${configuration}
\`\`\`
`;
