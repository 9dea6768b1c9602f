import { spawn, spawnSync } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { freePort } from "#scripts/free-port.ts";
import { client } from "#test/support/client.ts";
import { until } from "#test/support/descendants.ts";
import { atEnd, emptyFolder } from "#test/support/folder.ts";
import { EXECUTABLE } from "#test/support/process.ts";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));
const NAMESPACES = ["--mount", "--pid", "--fork", "--kill-child", "--cgroup", "--uts", "--ipc"];
const ADMIN = "boot-test-token-of-32-characters";

test("under systemd, with all restrictions of the unit, the server is ready and ffmpeg is fully confined", async (context) => {
  const folder = emptyFolder();
  if (spawnSync("unshare", [...NAMESPACES, "mount", "-t", "tmpfs", "none", folder]).status !== 0) {
    console.warn("skipped: systemd can be started by root alone, in namespaces of its own");
    return context.skip();
  }
  const port = await freePort();
  const script = [
    join(ROOT, "test/suites/release/systemd.sh"),
    folder,
    EXECUTABLE,
    join(ROOT, "scripts/vodbox.service"),
  ];
  const boot = spawn("unshare", [...NAMESPACES, "sh", ...script, String(port)], { stdio: ["ignore", "pipe", "pipe"] });
  let said = "";
  for (const stream of [boot.stdout, boot.stderr])
    stream.on("data", (chunk) => {
      said += chunk;
    });
  const ended = new Promise((resolve) => boot.once("close", resolve));
  atEnd(async () => {
    boot.kill("SIGKILL");
    await ended;
  });
  const call = client(`http://127.0.0.1:${port}`);
  await until(
    "the unit is ready",
    async () => {
      if (boot.exitCode !== null) throw new Error(`systemd ended: ${said}`);
      return call("GET", "/readyz").then(
        ({ status }) => status === 200,
        () => false,
      );
    },
    60_000,
  );
  await call("POST", "/api/v1/admin/doctor/checkup", { admin: ADMIN, body: {} });
  const checkup = await until("the check-up is done", async () => {
    const { body } = await call("GET", "/api/v1/admin/doctor/checkup", { admin: ADMIN });
    return body.status === "done" ? body : null;
  });
  const ffmpeg = checkup.findings.find((one: { check: string }) => one.check === "ffmpeg");
  expect(ffmpeg).toMatchObject({
    ok: true,
    detail: expect.stringMatching(
      /encodes and decodes(, but cannot encode av1, .*)? \(no control group\): \S+ \(bundled\)$/,
    ),
  });
});
