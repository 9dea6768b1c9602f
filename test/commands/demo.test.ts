import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { binaries } from "../media/sources.ts";
import { emptyFolder } from "../support/folder.ts";
import { run } from "../support/process.ts";

test("a demo that fails stops the server that it started", { timeout: 60_000 }, async () => {
  const cwd = emptyFolder();
  const ffmpeg = join(cwd, "ffmpeg");
  writeFileSync(ffmpeg, `#!/bin/sh\ncase "$*" in *testsrc2*) exit 1;; esac\nexec ${binaries.ffmpeg} "$@"\n`, {
    mode: 0o755,
  });
  const demo = await run(["demo", "--port", "0"], { cwd, env: { VODBOX_FFMPEG: ffmpeg } });
  expect(demo.stdout).toContain("vodbox ready on http://");
  expect(demo).toMatchObject({ code: 1, signal: null });
  expect(demo.stderr).toMatch(/^vodbox: /m);
});
