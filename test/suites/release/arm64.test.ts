import { execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { staticFfmpeg } from "#scripts/ffmpeg/build.ts";
import { isNightly } from "#test/support/amount.ts";
import { emptyFolder, removeFolder } from "#test/support/folder.ts";
import { unpackedImage } from "#test/support/image.ts";
import { lineOf, stopCleanly, watched } from "#test/support/process.ts";
import { artifact, RELEASE_MS, RELEASED } from "#test/support/release.ts";

/** Interprets arm64. It executes no child processes: that needs a setting of the kernel. */
const QEMU = "qemu-aarch64-static";
const hasQemu = spawnSync(QEMU, ["--version"]).status === 0;
if (!hasQemu) console.warn(`skipped: there is no ${QEMU}; install qemu-user-static`);

const isReleased = RELEASED.includes("arm64");
if (!isReleased) console.warn("skipped: there is no ffmpeg for arm64 in the cache; npm run test:nightly compiles it");

describe.skipIf(!isReleased)("the release for arm64", () => {
  let image: ReturnType<typeof unpackedImage>;
  let executable: string;
  beforeAll(async () => {
    executable = await artifact("linux-arm64");
    image = unpackedImage(await artifact("linux-arm64.oci.tar"));
  }, RELEASE_MS);
  afterAll(() => removeFolder(image.folder));

  /** With the libraries of the image for arm64. */
  const start = (program: string, ...args: string[]) => {
    const env = { VODBOX_CACHE_DIR: mkdtempSync(join(image.folder, "cache-")) } as unknown as NodeJS.ProcessEnv;
    const all = ["-L", image.root, program, ...args];
    return watched(spawn(`/usr/bin/${QEMU}`, all, { cwd: emptyFolder(), env, stdio: ["ignore", "pipe", "pipe"] }));
  };

  test("the executable has all embedded programs, and the image contains it", () => {
    const content = readFileSync(executable);
    for (const name of ["ffmpeg", "ffprobe", "libsql.node", "vodbox-sandbox", "whisper.node"])
      expect([name, content.includes(`"${name}":{"sha256":"`)]).toEqual([name, true]);
    expect(readFileSync(join(image.root, "usr/bin/vodbox")).equals(content)).toBe(true);
  });

  test.skipIf(!hasQemu || !isNightly)("the executable serves", async () => {
    const server = start(executable, "serve", "--port", "0", "--workers", "0");
    const base = (await lineOf(server, /^vodbox ready on (\S+)$/m))[1];
    expect((await fetch(`${base}/readyz`)).status).toBe(200);
    await stopCleanly(server);
  });

  test.skipIf(!hasQemu || !isNightly)("its ffmpeg encodes, and ffprobe reads the result", async () => {
    const { ffmpeg, ffprobe } = await staticFfmpeg("arm64");
    const clip = join(emptyFolder(), "clip.mp4");
    const input = ["-f", "lavfi", "-i", "testsrc2=s=160x90:d=1", "-f", "lavfi", "-i", "sine=d=1"];
    execFileSync(QEMU, [ffmpeg, "-v", "error", "-nostdin", ...input, "-c:v", "libx264", "-c:a", "aac", clip]);
    const shown = execFileSync(QEMU, [
      ffprobe,
      "-v",
      "error",
      "-show_entries",
      "stream=codec_name",
      "-of",
      "csv=p=0",
      clip,
    ]);
    expect(shown.toString()).toBe("h264\naac\n");
  });
});
