import { spawn, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { expect, test } from "vitest";
import { redirects } from "#cli/import/redirects.ts";
import { freePort } from "#scripts/free-port.ts";
import { atEnd, emptyFolder } from "#test/support/folder.ts";

/** Paths of old URLs, as strangers may choose them. */
const PATHS = [
  "/Trip.mp4",
  "/trip.mp4",
  "/TRIP (1+1).mp4",
  "/trip (1+1).mp4",
  "/~^.*$",
  "/a$uri${x}",
  "/x\\",
  '/q"; return 200; #',
  `/${"é".repeat(900)}`,
  "/a b;}{",
  "/*.example",
  "/100%25 off",
  "/default",
];
const BASE = "https://v.example";
const entries = PATHS.map((path, at) => ({
  id: String(at),
  assetId: at,
  externalId: `vid_${at}`,
  stage: "verified" as const,
  oldPaths: [{ path, to: "watch" as const }],
}));

test("nginx loads the redirects of any paths, and redirects each to its video", async () => {
  const folder = emptyFolder();
  const port = await freePort();
  writeFileSync(join(folder, "map.conf"), await redirects(entries, BASE, "nginx"));
  const temps = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (each) => `${each}_temp_path ${folder}/${each};`,
  );
  writeFileSync(
    join(folder, "nginx.conf"),
    `master_process off; daemon off; pid ${folder}/pid; error_log stderr;
events {}
http { access_log off; ${temps.join(" ")} include ${folder}/map.conf;
server { listen 127.0.0.1:${port}; if ($vodbox_redirect) { return 301 $vodbox_redirect; } return 404; } }
`,
  );
  const args = ["-e", "stderr", "-p", folder, "-c", join(folder, "nginx.conf")];
  const env = { ...process.env, PATH: `${process.env.PATH}:/usr/sbin` };
  const checked = spawnSync("nginx", ["-t", ...args], { env, encoding: "utf8" });
  expect(checked.stderr).toMatch(/test is successful/);
  const nginx = spawn("nginx", args, { env, stdio: "ignore" });
  atEnd(() => void nginx.kill("SIGKILL"));
  const locationOf = (path: string) =>
    new Promise<string>((resolve, reject) => {
      const encoded = path.split("/").map(encodeURIComponent).join("/");
      request({ port, host: "127.0.0.1", path: encoded }, (response) => {
        response.resume();
        resolve(`${response.statusCode} ${response.headers.location ?? ""}`.trim());
      })
        .once("error", reject)
        .end();
    });
  await expect.poll(() => locationOf("/other").catch(() => null), { timeout: 60_000 }).toBe("404");
  for (const [at, path] of PATHS.entries())
    expect([path, await locationOf(path)]).toEqual([path, `301 ${BASE}/watch/vid_${at}`]);
});
