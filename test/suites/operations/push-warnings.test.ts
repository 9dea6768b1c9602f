import { join } from "node:path";
import { expect, test } from "vitest";
import { json } from "#test/support/commands/outcome.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { fast, ffmpeg, picture, sound } from "#test/support/media/sources.ts";
import { run, startServer, tenantKey } from "#test/support/process.ts";

const message = "Track 3 (audio, tta) cannot be decoded and was left out.";
const warnings = [{ code: "track_skipped", message }];

test("push and the operator's commands say what of a source was left out", { timeout: 200_000 }, async () => {
  const folder = emptyFolder();
  const data = join(folder, "data");
  const server = await startServer(data, { args: ["--workers", "1"] });
  const key = await tenantKey(server, ["assets:read", "assets:write", "playback:read"]);
  const env = { VODBOX_SERVER: server.base, VODBOX_KEY: key, VODBOX_CACHE_DIR: join(folder, "cache") };
  const operator = { VODBOX_ADMIN_TOKEN: server.admin };
  const film = async (name: string, ...audio: string[]) => {
    const path = join(folder, name);
    const maps = ["-map", "0", "-map", "1", ...(audio.length > 2 ? ["-map", "1"] : [])];
    await ffmpeg(...picture("64x36", "5", 1), ...sound(1), ...maps, ...fast, ...audio, path);
    return path;
  };
  const tta = ["-c:a:0", "aac", "-c:a:1", "tta"];
  const whole = await film("whole.mkv", "-c:a", "aac");
  for (const options of [["--wait-ready"], ["--encode"]]) {
    const name = options[0]?.slice(2);
    const pushed = async (path: string) => {
      const ended = await run(["push", path, ...options], { env });
      expect(ended, ended.stderr).toMatchObject({ code: 0 });
      return ended;
    };
    const path = await film(`${name}.mkv`, ...tta);
    const { stdout, stderr } = await pushed(path);
    expect(stderr).toContain(`vodbox: ${path}: ${message}\n`);
    const [, id] = /asset (\d+)/.exec(stdout) ?? [];
    const show = ["admin", "asset", "show", String(id), "--data", data];
    const shown = await run(show, { env: operator });
    expect(shown, shown.stderr).toMatchObject({ code: 0 });
    expect(shown.stdout).toMatch(/^warnings +track_skipped: Track 3 \(audio, tta\) cannot be decoded/m);
    expect(await json(show, { env: operator })).toMatchObject({ warnings });
    const again = await run(["push", await film(`${name}-json.mkv`, ...tta), ...options, "--json"], { env });
    expect(JSON.parse(again.stdout)).toMatchObject([{ warnings }]);
    expect((await pushed(whole)).stderr).not.toContain("left out");
  }
});
