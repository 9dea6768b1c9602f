import { execFileSync } from "node:child_process";
import { chmodSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import type { Arch } from "#scripts/build/base.ts";
import { own } from "#scripts/build/paths.ts";
import { commandsPackage, packCommands } from "#scripts/clients/commands.ts";
import { sha256 } from "#scripts/release/checksums.ts";
import { formulaName, writeFormula } from "#scripts/release/homebrew.ts";
import { artifactNames } from "#scripts/release/names.ts";
import { emptyFolder, newFolder, removeFolder } from "#test/support/folder.ts";

const STUB = join(import.meta.dirname, "homebrew/stub.rb");
const BASE = "https://video.example.com/releases/";
const ARCHES = ["x64", "arm64"] as const;

/** A release whose executables are scripts that print what they are called with. */
let folder: string;
beforeAll(async () => {
  folder = newFolder();
  for (const arch of ARCHES) {
    const file = join(folder, artifactNames(arch).executable);
    writeFileSync(file, `#!/bin/sh\necho "vodbox ${own.version} for ${arch}: $*"\n`);
    chmodSync(file, 0o644);
  }
  await packCommands(folder);
  await writeFormula(folder, BASE, ARCHES);
  return () => removeFolder(folder);
});

function evaluate(system: "linux" | "macos", arch: Arch, download: string, prefix = emptyFolder()) {
  const processor = arch === "x64" ? "intel" : "arm";
  const file = join(folder, formulaName);
  const args = [STUB, file, system, processor, join(folder, download), prefix];
  return JSON.parse(execFileSync("ruby", ["-W:no-deprecated", ...args], { encoding: "utf8", maxBuffer: 1 << 26 }));
}

test("the formula is Ruby without warnings", () => {
  const shown = execFileSync("ruby", ["-wc", join(folder, formulaName)], { encoding: "utf8" });
  expect(shown).toBe("Syntax OK\n");
});

test.each(ARCHES)(
  "on Linux the formula installs the executable for %s, with completions and a service",
  async (arch) => {
    const { executable } = artifactNames(arch);
    const prefix = emptyFolder();
    const facts = evaluate("linux", arch, executable, prefix);
    const says = (rest: string) => `vodbox ${own.version} for ${arch}: ${rest}\n`;
    expect(facts).toMatchObject({
      version: own.version,
      url: `${BASE}${executable}`,
      sha256: await sha256(join(folder, executable)),
      dependencies: [],
      completions: {
        bash: says("completion bash"),
        zsh: says("completion zsh"),
        fish: says("completion fish"),
      },
      service: {
        run: [`${prefix}/bin/vodbox`, "serve"],
        environment_variables: { VODBOX_DATA_DIR: "/var/lib/vodbox" },
      },
    });
    expect(statSync(join(prefix, "bin/vodbox")).mode & 0o777).toBe(0o755);
    expect(readFileSync(join(prefix, "bin/vodbox"), "utf8")).toContain(`for ${arch}`);
  },
);

test("on macOS the formula installs the commands of clients, which run", async () => {
  const prefix = emptyFolder();
  const facts = evaluate("macos", "arm64", commandsPackage, prefix);
  expect(facts).toMatchObject({
    version: own.version,
    url: `${BASE}${commandsPackage}`,
    sha256: await sha256(join(folder, commandsPackage)),
    dependencies: ["node"],
    completions: { zsh: expect.stringContaining("#compdef vodbox") },
  });
  const shown = execFileSync(join(prefix, "bin/vodbox"), ["--version"], { encoding: "utf8" });
  expect(shown).toContain(`vodbox  ${own.version}\n`);
});

test("a release for one processor has a formula for that one", async () => {
  const only = emptyFolder();
  writeFileSync(join(only, artifactNames("x64").executable), "");
  writeFileSync(join(only, commandsPackage), "");
  await writeFormula(only, BASE, ["x64"]);
  expect(readFileSync(join(only, formulaName), "utf8")).not.toContain("on_arm");
  execFileSync("ruby", ["-wc", join(only, formulaName)]);
});
