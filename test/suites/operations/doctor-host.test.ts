import { chmodSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { encodingSpec } from "#media/encoding-spec.ts";
import { detectFfmpegCapabilities } from "#media/ffmpeg-capabilities.ts";
import type { Finding } from "#test/support/doctor.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { binaries } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";
import { run, startServer } from "#test/support/process.ts";

const modeOf = (path: string) => statSync(path).mode & 0o777;

test("modes that allow access to others are reported, and corrected by --fix, which is in the audit log", async () => {
  const dataDir = emptyFolder();
  const env = { VODBOX_ADMIN_TOKEN: "", VODBOX_LOG_LEVEL: "error" };
  const server = await startServer(dataDir, { env });
  const doctor = async (...more: string[]) => {
    const { code, stdout } = await run(["admin", "doctor", "--json", "--data", dataDir, ...more], { env });
    const report = JSON.parse(stdout) as { ok: boolean; fix: boolean; fixed: number; findings: Finding[] };
    return { code, ...report, of: (check: string) => report.findings.find((one) => one.check === check) as Finding };
  };
  // With the modes that they are created with.
  for (const name of ["vodbox.db", "vodbox.db-wal", "secrets/live_token", "local-proof"])
    expect([name, modeOf(join(dataDir, name))]).toEqual([name, 0o600]);
  const paths = ["vodbox.db", "local-proof", "secrets", ""].map((name) => join(dataDir, name));
  chmodSync(join(dataDir, "vodbox.db"), 0o644);
  chmodSync(join(dataDir, "local-proof"), 0o640);
  chmodSync(join(dataDir, "secrets"), 0o755);
  chmodSync(dataDir, 0o755);
  const open = paths.map(modeOf);
  const told = await doctor();
  expect(told).toMatchObject({ code: 1, ok: false, fix: false, fixed: 0 });
  for (const [path, right] of [
    [dataDir, "0700"],
    [join(dataDir, "vodbox.db"), "0600"],
  ] as const)
    expect(told.of("permissions").detail).toContain(`chmod ${right} ${path}`);
  expect(paths.map(modeOf)).toEqual(open);
  const fixed = await doctor("--fix");
  expect(fixed).toMatchObject({ code: 0, ok: true, fix: true, fixed: 4 });
  expect(fixed.of("permissions")).toMatchObject({ ok: true, fixed: 4 });
  expect(paths.map(modeOf)).toEqual([0o600, 0o600, 0o700, 0o700]);
  server.child.kill("SIGKILL");
  await server.ended;
  const { stdout } = await run(["admin", "audit", "--json", "--data", dataDir], { env });
  const entries = JSON.parse(stdout).filter(({ route }: { route: string }) => route.endsWith("/checkup"));
  expect(entries).toMatchObject([{ method: "POST", actor: "admin", fields: ["fix"], operator: expect.any(String) }]);
});

nightly("a data directory of mode 0755 is a warning while everything in it is closed", async () => {
  const dataDir = join(emptyFolder(), "made-by-the-operator");
  mkdirSync(dataDir);
  chmodSync(dataDir, 0o755);
  const env = { VODBOX_ADMIN_TOKEN: "", VODBOX_LOG_LEVEL: "error" };
  const server = await startServer(dataDir, { env });
  const doctor = async (...more: string[]) => {
    const { code, stdout } = await run(["admin", "doctor", "--json", "--data", dataDir, ...more], { env });
    const report = JSON.parse(stdout) as { ok: boolean; findings: Finding[] };
    return { code, ok: report.ok, permissions: report.findings.find(({ check }) => check === "permissions") };
  };
  expect(modeOf(dataDir)).toBe(0o755);
  for (const open of [["."], [".", "secrets"]]) {
    for (const name of open) chmodSync(join(dataDir, name), 0o755);
    const told = await doctor();
    expect(told).toMatchObject({ code: 0, ok: true, permissions: { ok: true, warning: true, fixed: 0 } });
    for (const name of open) expect(told.permissions?.detail).toContain(`chmod 0700 ${join(dataDir, name)}`);
  }
  const table = await run(["admin", "doctor", "--data", dataDir], { env });
  expect([table.code, table.stdout]).toEqual([0, expect.stringMatching(/^warning +permissions .*chmod 0700/m)]);

  // A directory with open files, or one that others can write to, is a fault as before.
  const faults: [string, number][] = [
    ["vodbox.db", 0o644],
    ["local-proof", 0o640],
    ["objects", 0o755],
    ["", 0o775],
  ];
  for (const [name, mode] of faults) {
    const path = join(dataDir, name);
    const before = modeOf(path);
    chmodSync(path, mode);
    expect(await doctor(), name).toMatchObject({ code: 1, ok: false, permissions: { ok: false } });
    chmodSync(path, before);
  }
  expect(await doctor("--fix")).toMatchObject({ code: 0, permissions: { ok: true, fixed: 2 } });
  expect((await doctor()).permissions).not.toHaveProperty("warning");
  expect([modeOf(dataDir), modeOf(join(dataDir, "secrets"))]).toEqual([0o700, 0o700]);
  server.child.kill("SIGTERM");
  await server.ended;
});

/** An ffmpeg that behaves like the real one, except for one thing. */
function crippled(instead: string): string {
  const path = join(emptyFolder(), "ffmpeg");
  writeFileSync(path, `#!/bin/sh\n${instead}\nexec ${binaries.ffmpeg} "$@"\n`);
  chmodSync(path, 0o755);
  return path;
}
const examined = (ffmpeg: string) =>
  detectFfmpegCapabilities({ ...binaries, ffmpeg }, { encoder: "software", spec: encodingSpec }).then(
    (told) => told,
    (error: Error) => `FAULT ${error.message}`,
  );

test("an ffmpeg that lacks a component, or cannot use it, is reported", async () => {
  expect(await examined(binaries.ffmpeg)).toMatch(/^ffmpeg \S+ has everything needed, encodes and decodes/);
  const without = (list: string, name: string) =>
    `case "$*" in *-${list}*) ${binaries.ffmpeg} -hide_banner -${list} | grep -v ' ${name} '; exit;; esac`;
  const rows: [string, string, RegExp][] = [
    ["an encoder", without("encoders", "libx264"), /lacks encoders libx264; use the bundled one/],
    ["a decoder", without("decoders", "hevc"), /lacks decoders hevc/],
    ["a demuxer", without("demuxers", "mxf"), /lacks demuxers mxf/],
    ["a muxer", without("muxers", "dash"), /lacks muxers dash/],
    ["a filter", without("filters", "tonemap"), /lacks filters tonemap/],
    [
      "an encoder of a profile",
      without("encoders", "libsvtav1"),
      /encodes and decodes, but cannot encode av1, for lack/,
    ],
    ["an encoder that fails", 'case "$*" in *libx264*clip.mp4) echo "no luck" >&2; exit 1;; esac', /It said: no luck/],
    ["a crash", "kill -SEGV $$", /FAULT/],
  ];
  for (const [name, instead, expected] of rows) expect.soft(await examined(crippled(instead)), name).toMatch(expected);
  expect(await examined("/nowhere/ffmpeg")).toMatch(/^FAULT .*\/nowhere\/ffmpeg/);
});
