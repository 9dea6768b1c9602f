import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { expect, test } from "vitest";
import { sha256 } from "#scripts/release/checksums.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { artifact, RELEASE_MS, release } from "#test/support/release.ts";

test("the release has the Python client, with checksums, and pip installs it", { timeout: RELEASE_MS }, async () => {
  const folder = await release();
  const wheel = await artifact("py3-none-any.whl");
  const sdist = wheel.replace("-py3-none-any.whl", ".tar.gz");
  const sums = readFileSync(join(folder, "SHA256SUMS"), "utf8");
  for (const path of [wheel, sdist]) expect(sums).toContain(`${await sha256(path)}  ${basename(path)}\n`);
  const target = emptyFolder();
  const offline = ["--quiet", "--no-index", "--no-deps", "--target", target];
  execFileSync("/usr/bin/python3", ["-m", "pip", "install", ...offline, wheel]);
  execFileSync("/usr/bin/python3", ["-c", "import vodbox; vodbox.Client('http://127.0.0.1').close()"], {
    env: { ...process.env, PYTHONPATH: target },
  });
});
