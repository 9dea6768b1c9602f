import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Arch } from "../build/base.ts";
import { own } from "../build/paths.ts";
import { commandsPackage } from "../clients/commands.ts";
import { sha256 } from "./checksums.ts";
import { artifactNames } from "./names.ts";

export const formulaName = "vodbox.rb";

/** Homebrew's blocks for processors. */
const BLOCKS: Record<Arch, string> = { x64: "on_intel", arm64: "on_arm" };

/**
 * Writes the formula for a tap of Homebrew: it installs the executables of `folder`, which are published at `baseUrl`, and the
 * npm package of the commands on macOS.
 * `installer` has refused a URL that ends a string of Ruby. https://docs.brew.sh/Formula-Cookbook
 */
export async function writeFormula(folder: string, baseUrl: string, arches: readonly Arch[]): Promise<void> {
  const url = (name: string) => `${baseUrl.replace(/\/$/, "")}/${name}`;
  const downloads: string[] = [];
  for (const arch of arches) {
    const { executable } = artifactNames(arch);
    downloads.push(`    ${BLOCKS[arch]} do
      url "${url(executable)}"
      sha256 "${await sha256(join(folder, executable))}"
    end
`);
  }
  const commands = await sha256(join(folder, commandsPackage));
  const formula = readFileSync(join(import.meta.dirname, formulaName), "utf8")
    .replace("@HOMEPAGE@", () => baseUrl)
    .replace("@VERSION@", () => own.version)
    .replace("@COMMANDS_URL@", () => url(commandsPackage))
    .replace("@COMMANDS_SHA256@", () => commands)
    .replace("@LINUX@\n", () => downloads.join(""));
  writeFileSync(join(folder, formulaName), formula);
}
