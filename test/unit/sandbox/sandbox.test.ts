import { execFile } from "node:child_process";
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MediaError } from "#media/error.ts";
import { run } from "#media/ffmpeg.ts";
import { sandboxLauncher } from "#src/lib/executable/binaries.ts";
import { findSandbox, missingIsolation, sandboxedCommand } from "#src/lib/sandbox/sandbox.ts";
import { jobNow, uploadClip } from "#test/support/crash/encoding.ts";
import { descendantsOf, isAlive, until, untilGone } from "#test/support/descendants.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { binaries, fast, ffmpeg, picture, temporaryFolder } from "#test/support/media/sources.ts";
import { startServer } from "#test/support/process.ts";

const folder = temporaryFolder("sandbox");
const work = join(folder, "work");
const secret = join(folder, "secret");
const source = join(folder, "source");
let port = 0;
let calls = 0;
const listener = createServer((_request, response) => {
  calls++;
  response.end("reached");
});

beforeAll(async () => {
  mkdirSync(work);
  writeFileSync(secret, "FOUND a secret\n");
  writeFileSync(source, "FOUND the source\n");
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  port = (listener.address() as AddressInfo).port;
});
afterAll(() => {
  listener.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A shell script, as an operator's own ffmpeg may be one. */
function standIn(name: string, script: string): string {
  const path = join(folder, name);
  writeFileSync(path, `#!/bin/sh\n${script}\n`);
  chmodSync(path, 0o755);
  return path;
}
const launcher = sandboxLauncher() as string;
const modes = (await promisify(execFile)(launcher, ["--check"])).stdout.trim().split("\n");

test("this machine can isolate ffmpeg in both ways, so that the tests below are meaningful", async () => {
  expect(modes).toEqual(["namespaces", expect.stringMatching(/^landlock \d+$/)]);
  expect(await missingIsolation(binaries.ffmpeg)).toEqual([]);
});

/** The same program in each of the launcher's modes; besides the system it is granted `work` and `source`. */
describe.each(["namespaces", "landlock"])("by %s", (mode) => {
  const inside = async (script: string, grants: string[] = []) => {
    const program = standIn(`stand-in-${mode}.sh`, script);
    const system = ["/usr", "/bin", "/lib", "/lib64", program].flatMap((path) => ["--read", path]);
    const own = ["--read", source, "--write", work, "--device", "/dev/null"];
    const args = ["--mode", mode, ...system, ...own, ...grants, "--", program];
    return promisify(execFile)(launcher, args, { cwd: work }).then(
      ({ stdout, stderr }) => ({ code: 0, signal: null, said: stdout + stderr }),
      (error) => ({ code: error.code, signal: error.signal, said: `${error.stdout}${error.stderr}` }),
    );
  };

  test("granted paths are readable, and the working directory is writable", async () => {
    const { code, said } = await inside(`cat ${source} && echo made > out && cat out`);
    expect(said).toBe("FOUND the source\nmade\n");
    expect(code).toBe(0);
    expect(readFileSync(join(work, "out"), "utf8")).toBe("made\n");
  });

  test.each([
    ["a file next to what is granted", () => `cat ${secret}`],
    ["the same by a way through a granted folder", () => `cat ${work}/../secret`],
    ["the same by a symbolic link", () => `ln -s ${secret} link; cat link`],
    ["the same by a hard link", () => `ln ${secret} hard && cat hard`],
    [
      "the list of a folder that is not granted",
      () => `ls ${folder} | sed 's/^/FOUND /'; ls /root /home /etc | sed 's/^/FOUND /'`,
    ],
    ["passwords", () => "cat /etc/passwd | sed 's/^/FOUND /'"],
    ["other processes", () => "cat /proc/1/environ /proc/self/environ | tr '\\0' '\\n' | sed 's/^/FOUND /'"],
    ["disks", () => "head -c 1 /dev/vda /dev/sda && echo FOUND"],
    [
      "a source that is changed",
      () => `echo changed > ${source} && echo FOUND; echo changed >> ${source} && echo FOUND`,
    ],
    ["a program that it wrote", () => `printf '#!/bin/sh\\necho FOUND\\n' > own; chmod +x own; ./own`],
  ])("refused: %s", async (_what, script) => {
    const { said } = await inside(script());
    // A directory listing may contain only the names of what is granted.
    const listed = said.split("\n").filter((line) => line.startsWith("FOUND"));
    expect(listed.filter((line) => !/^FOUND (work|source|stand-in-\w+\.sh)$/.test(line))).toEqual([]);
    expect(readFileSync(source, "utf8")).toBe("FOUND the source\n");
    for (const name of readdirSync(work)) rmSync(join(work, name));
  });

  test("no server of this machine is reachable, and no process can be signalled", async () => {
    calls = 0;
    const { said } = await inside(
      `curl -s --max-time 5 http://127.0.0.1:${port}/; echo "curl $?"; kill -0 ${process.pid} && echo FOUND`,
    );
    expect(said).toMatch(/^curl [1-9]/m);
    expect(said).not.toContain("reached");
    expect(said).not.toContain("FOUND");
    expect(calls).toBe(0);
  });

  test("no privileges, and limits", async () => {
    const { said } = await inside(
      "mount -t tmpfs none /usr && echo FOUND; chown 1 /usr && echo FOUND; ulimit -d; ulimit -c",
      [...["--data", String(64 * 1024 * 1024), "--nofile", "64"]],
    );
    expect(said).not.toContain("FOUND");
    expect(said).toMatch(/^65536\n0$/m);
  });

  test("its end is reported correctly: status, signal, missing program", async () => {
    expect((await inside("exit 7")).code).toBe(7);
    expect((await inside("kill -SEGV $$")).signal).toBe("SIGSEGV");
    const args = ["--mode", mode, "--write", work, "--", "/nowhere/ffmpeg"];
    await expect(promisify(execFile)(launcher, args, { cwd: work })).rejects.toMatchObject({ code: 127 });
  });

  test("it ends with its parent, in a namespace with all child processes", async () => {
    const program = standIn(`sleeper-${mode}.sh`, "sleep 1000 & sleep 1000");
    const system = ["/usr", "/bin", "/lib", "/lib64", program].flatMap((path) => ["--read", path]);
    const command = [launcher, "--mode", mode, ...system, "--device", "/dev/null", "--write", work].join(" ");
    const parent = execFile("/bin/sh", ["-c", `${command} --parent $$ -- ${program}; true`], { cwd: work });
    const below = await until("both sleep", () => {
      const all = descendantsOf(parent.pid as number);
      return all.filter((one) => one.command === "sleep 1000").length === 2 ? all : null;
    });
    process.kill(parent.pid as number, "SIGKILL");
    // Landlock has no process namespace: only the program itself ends with its parent, and ffmpeg starts no others.
    await untilGone(mode === "namespaces" ? below : below.filter((one) => one.command.includes(program)));
    for (const one of below) if (isAlive(one)) process.kill(one.pid, "SIGKILL");
  });
});

test("a run of ffmpeg reads its input and writes its directory, and nothing else", async () => {
  const input = join(folder, "clip.mp4");
  await ffmpeg(...picture("64x64", "25", 1), ...fast, input);
  const copy = (reads: string[], output: string) =>
    run(binaries.ffmpeg, {
      args: ["-nostdin", "-v", "error", "-i", `file:${input}`, "-c", "copy", "-y", `file:${output}`],
      cwd: work,
      reads,
      timeLimitMs: 20_000,
    });
  await copy([input], join(work, "copy.mp4"));
  await expect(copy([], join(work, "again.mp4"))).rejects.toBeInstanceOf(MediaError);
  await expect(copy([input], join(folder, "outside.mp4"))).rejects.toBeInstanceOf(MediaError);
  expect(readdirSync(folder)).not.toContain("outside.mp4");
});

test("an ffmpeg that needs more than the system's directories runs without the isolation, and that is reported", async () => {
  const helper = standIn("helper.sh", "echo helped");
  const program = standIn("wrapper.sh", `exec ${helper}`);
  expect(await missingIsolation(program)).toEqual([`no file system isolation: ${program} does not start in it`]);
  expect((await run(program, { args: [], cwd: work, timeLimitMs: 20_000 })).toString()).toBe("helped\n");
});

test("without the launcher, bubblewrap isolates it as well, and without both that is reported", async () => {
  const system = await findSandbox(null);
  expect(system.isolation).toEqual({ kind: "bwrap", path: "/usr/bin/bwrap" });
  expect(await missingIsolation(binaries.ffmpeg, system)).toEqual([]);
  const program = standIn(
    "wrapped.sh",
    `cat ${source} ${secret}; echo made > out; pwd; ulimit -d; kill -0 ${process.pid} && echo FOUND`,
  );
  const confinement = {
    limits: { memoryBytes: 64 * 2 ** 20, timeLimitMs: 5000 },
    grants: { reads: [source], writes: [work], devices: false },
    cwd: work,
    nice: 10,
  };
  const [file = "", ...args] = await sandboxedCommand(program, confinement, system);
  const said = await promisify(execFile)(file, args, { cwd: work }).catch((error) => error);
  expect(said.stdout).toBe(`FOUND the source\n${work}\n65536\n`);
  expect(readFileSync(join(work, "out"), "utf8")).toBe("made\n");
  expect(await missingIsolation(binaries.ffmpeg, { ...system, isolation: null })).toEqual(["no file system isolation"]);
});

test("a server's ffmpeg can access neither secrets nor database, objects or other jobs, nor any server", async () => {
  const dataDir = emptyFolder();
  // The server's whole data directory, then each secret by name. The output is the log of the job.
  const program = standIn(
    "prober.sh",
    [
      `find ${dataDir} -type f 2>/dev/null | while read -r file; do echo "SEEN $file" >&2; done`,
      `for file in secrets/admin_token secrets/signing_secret vodbox.db vodbox.db-wal server.json local-proof; do head -c 1 "${dataDir}/$file" >/dev/null 2>&1 && echo "SEEN $file" >&2; done`,
      `curl -s --max-time 3 http://127.0.0.1:${port}/ && echo "SEEN network" >&2`,
      "env | grep -i vodbox_ | sed 's/^/SEEN /' >&2",
      "echo PROBED >&2; exit 1",
    ].join("\n"),
  );
  const clip = join(folder, "upload.mp4");
  await ffmpeg(...picture("64x64", "25", 1), ...fast, clip);
  const server = await startServer(dataDir, {
    env: { VODBOX_FFPROBE: program, VODBOX_MAX_ATTEMPTS: "1" },
    args: ["--workers", "1"],
  });
  await uploadClip(server, clip, "other");
  const made = await uploadClip(server, clip);
  const job = await until(
    "the job has failed",
    async () => {
      const now = await jobNow(server, made);
      return now.status === "failed" ? now : null;
    },
    60_000,
  );
  const { body } = await server.as({ admin: server.admin }).getJob(job.id);
  expect(body.log_tail).toContain("PROBED");
  const seen = (body.log_tail as string).match(/^SEEN .*$/gm) ?? [];
  // Only the job's own source is readable; the log names it without its directory.
  expect(seen).toEqual([expect.stringMatching(/^SEEN \w+\.mp4$/)]);
  server.child.kill("SIGTERM");
  await server.ended;
});
