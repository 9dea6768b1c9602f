import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { emptyFolder } from "#test/support/folder.ts";

const BACKGROUND = join(import.meta.dirname, "../../../scripts/ffmpeg/background.ts");

/** Calls `completeInBackground` in a process with an empty cache, where `flock` only records its arguments. */
function called(stage: string, env: Record<string, string>) {
  const folder = emptyFolder();
  const record = join(folder, "arguments");
  writeFileSync(
    join(folder, "flock"),
    `#!/bin/sh\nprintf '%s\\n' "$*" >"${record}.new"\nmv "${record}.new" "${record}"\n`,
    {
      mode: 0o755,
    },
  );
  // As if it were all installed.
  writeFileSync(join(folder, "dpkg-query"), "#!/bin/sh\nprintf 'install ok installed'\n", { mode: 0o755 });
  const script = `const { completeInBackground } = await import(${JSON.stringify(BACKGROUND)});
    await completeInBackground({ ffmpeg: "/linked/ffmpeg", ffprobe: "/linked/ffprobe", stage: ${JSON.stringify(stage)} });`;
  const stdout = execFileSync(process.execPath, ["--input-type=module", "-e", script], {
    env: { PATH: `${folder}:${process.env.PATH}`, HOME: folder, XDG_CACHE_HOME: folder, ...env },
    encoding: "utf8",
  });
  return { stdout, record };
}

test("after a linked build the complete ffmpeg is compiled at the lowest priority, once at a time", async () => {
  const { stdout, record } = called("linked", {});
  expect(stdout).toMatch(
    /cannot encode AV1\. The complete one is being compiled in\nthe background.* Log: \S*complete\.log/,
  );
  // It is independent of the process that started it.
  await vi.waitUntil(() => existsSync(record), { timeout: 60_000 });
  expect(readFileSync(record, "utf8")).toMatch(
    /^--nonblock \S+\/lock-background nice -n 19 (ionice -c 3 )?\S+ \S+\/scripts\/ffmpeg\/complete\.ts \/linked\/ffmpeg$/m,
  );
});

test.each([
  ["in CI", "linked", { CI: "1" }],
  ["when the build has the complete one", "complete", {}],
])("nothing is compiled in the background %s", (_, stage, env) => {
  const { stdout, record } = called(stage, env as Record<string, string>);
  expect(stdout).toBe("");
  expect(existsSync(record)).toBe(false);
});
