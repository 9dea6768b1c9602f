import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { encode } from "#media/encode.ts";
import { encodingSpec as spec } from "#media/encoding-spec.ts";
import { MediaError } from "#media/error.ts";
import type { Probe } from "#media/probe.ts";
import { probeSource } from "#media/timeline.ts";
import { jobNow, uploadClip } from "#test/support/crash/encoding.ts";
import { until } from "#test/support/descendants.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { binaries, fast, ffmpeg, picture, temporaryFolder } from "#test/support/media/sources.ts";
import { startServer } from "#test/support/process.ts";

const folder = temporaryFolder("hostile-encoder");
const secrets = join(folder, "secrets");
const secret = join(secrets, "00001.m4s");
const outside = join(folder, "outside");
const SECRET = "SECRET-of-the-server";
const input = join(folder, "clip.mp4");
let probe: Probe;

beforeAll(async () => {
  await ffmpeg(...picture("320x180", "25", 2), ...fast, input);
  probe = await probeSource(input, binaries);
});
beforeEach(() => {
  rmSync(secrets, { recursive: true, force: true });
  mkdirSync(secrets);
  for (const name of ["00001.m4s", "init.mp4", "admin_token"]) writeFileSync(join(secrets, name), SECRET.repeat(1000));
  writeFileSync(outside, "outside");
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/**
 * An ffmpeg that works, and then does `attack`, where `$dir` is the folder of its last argument and `$cwd` its own. It needs
 * a program that the sandbox does not have, so that it runs without one: nothing but the reader protects the results.
 */
function compromised(name: string, attack: string): string {
  const path = join(folder, `${name}.sh`);
  const lines = [
    "#!/bin/sh",
    `[ -x ${binaries.ffmpeg} ] || exit 127`,
    `${binaries.ffmpeg} "$@" || exit $?`,
    `for last do :; done; last="\${last#file:}"; dir="\${last%/*}"; cwd="$PWD"`,
    '[ -d "$dir" ] || exit 0',
    attack,
    "exit 0",
  ];
  writeFileSync(path, lines.join("\n"));
  chmodSync(path, 0o755);
  return path;
}

/** During the run with this last argument. */
const during = (pattern: string, attack: string) => `case "$last" in ${pattern}) ${attack};; esac`;

const attacks: Record<string, string> = {
  "a still is a link": during("*still-*", `ln -sf ${secret} "$dir/still-001.jpg"`),
  "a still is a second name": during("*still-*", `ln -f ${secret} "$dir/still-001.jpg"`),
  "a still is a pipe": during("*still-*", `rm -f "$dir"/still-*; mkfifo "$dir/still-001.jpg"`),
  "a still is a folder": during("*still-*", `rm -f "$dir"/still-*; mkdir "$dir/still-001.jpg"`),
  "a still has terabytes": during("*still-*", `truncate -s 3T "$dir/still-001.jpg"`),
  "the thumbnail is a link outside": `ln -sf ${outside} ${folder}/out/thumbnail.jpg`,
  "the thumbnail is a link to nothing": `ln -sf ${secrets}/new ${folder}/out/thumbnail.jpg`,
  "the image of the storyboard is a link": `[ -e ${folder}/out/storyboard-1.jpg ] && ln -sf ${secret} ${folder}/out/storyboard-1.jpg`,
  "the manifests are links outside": `for name in master.m3u8 manifest.mpd storyboard.vtt; do ln -sf ${outside} ${folder}/out/$name; done`,
  "segments are links": `for one in ${folder}/out/*/00001.m4s; do ln -sf ${secret} $one; done`,
  "segments are second names": `for one in ${folder}/out/*/00001.m4s; do ln -f ${secret} $one; done`,
  "init segments are links": `for one in ${folder}/out/*/init.mp4; do ln -sf ${secrets}/init.mp4 $one; done`,
  "folders of renditions are links": `for one in ${folder}/out/*/; do rm -rf "$one"; ln -s ${secrets} "\${one%/}"; done`,
  "its working folder has links to folders": `for name in storyboard mp4 trials; do ln -s ${secrets} "$cwd/$name"; done`,
  "its samples are links outside": `ln -sf ${outside} "$cwd/sample.mp4"`,
  "names that break lines": `touch "$(printf '%s/a\\nb' "$dir")" "$dir/.." "$dir/-rf"`,
};

describe.each(Object.entries(attacks))("%s", (name, attack) => {
  test("nothing outside is read or changed", async () => {
    const outDir = join(folder, "out");
    rmSync(outDir, { recursive: true, force: true });
    const program = compromised(name.replaceAll(" ", "-"), attack);
    const before = { secrets: readdirSync(secrets), inode: statSync(secret).ino };
    await encode({
      input,
      outDir,
      probe,
      spec: { ...spec, storyboard: { ...spec.storyboard, enabled: true } },
      binaries: { ...binaries, ffmpeg: program },
      scratchDir: folder,
    }).catch((error) => expect(error).toBeInstanceOf(MediaError));
    expect(readFileSync(outside, "utf8")).toBe("outside");
    expect(readdirSync(secrets)).toEqual(before.secrets);
    expect(readFileSync(secret, "utf8")).toBe(SECRET.repeat(1000));
    const files = existsSync(outDir) ? readdirSync(outDir, { recursive: true, withFileTypes: true }) : [];
    for (const file of files) {
      expect([file.name, file.isFile() || file.isDirectory()]).toEqual([file.name, true]);
      const path = join(file.parentPath, file.name);
      if (!file.isFile() || statSync(path).ino === before.inode) continue;
      expect([file.name, readFileSync(path).includes(SECRET)]).toEqual([file.name, false]);
    }
  });
});

test("a compromised ffmpeg of a server publishes no secret", async () => {
  const dataDir = emptyFolder();
  const token = join(secrets, "admin_token");
  const program = compromised(
    "server",
    `for name in still-001.jpg thumbnail.jpg early-thumbnail.jpg extra.jpg; do ln -sf ${token} "$dir/$name"; ln -sf ${token} "$cwd/$name"; done`,
  );
  const server = await startServer(dataDir, {
    env: { VODBOX_FFMPEG: program, VODBOX_MAX_ATTEMPTS: "1" },
    args: ["--workers", "1"],
  });
  const made = await uploadClip(server, input);
  await until(
    "the job has ended",
    async () => {
      const { status } = await jobNow(server, made);
      return ["failed", "completed"].includes(status) ? status : null;
    },
    60_000,
  );
  for (const file of readdirSync(join(dataDir), { recursive: true, withFileTypes: true })) {
    if (!/\.(jpg|m4s|mp4|m3u8|mpd|vtt)$/.test(file.name)) continue;
    expect([file.name, file.isFile()]).toEqual([file.name, true]);
    expect([file.name, readFileSync(join(file.parentPath, file.name)).includes(SECRET)]).toEqual([file.name, false]);
  }
  expect(readFileSync(token, "utf8")).toBe(SECRET.repeat(1000));
  server.child.kill("SIGTERM");
  await server.ended;
});
