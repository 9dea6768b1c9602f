import { execFileSync, spawn } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { wordPressPluginName, writeWordPressPlugin } from "#scripts/clients/php/package.ts";
import { freePort } from "#scripts/free-port.ts";
import { sharedBrowser } from "#test/support/browser/browser.ts";
import { type Platform, startPlatform, untilReady, uploadClip } from "#test/support/browser/platform.ts";
import { until } from "#test/support/descendants.ts";
import { newFolder, removeFolder } from "#test/support/folder.ts";
import { type Started, watched } from "#test/support/process.ts";

/** Debian's WordPress with a database of its own. */
vi.setConfig({ hookTimeout: 200_000, testTimeout: 200_000 });

let platform: Platform;
let folder: string;
let site: string;
const started: Started[] = [];

beforeAll(async () => {
  platform = await startPlatform();
  folder = newFolder();
  chmodSync(folder, 0o755);
  const socket = join(folder, "database.sock");
  const data = join(folder, "database");
  const root = process.getuid?.() === 0 ? ["--user=root"] : [];
  execFileSync("mariadb-install-db", [`--datadir=${data}`, "--auth-root-authentication-method=normal", ...root]);
  const database = watched(
    spawn(
      "mariadbd",
      [
        ...["--no-defaults", `--datadir=${data}`, `--socket=${socket}`, "--skip-networking", ...root],
        `--pid-file=${join(folder, "database.pid")}`,
      ],
      { detached: true },
    ),
  );
  started.push(database);
  await until("the database is ready", () => database.stderr().includes("ready for connections"));
  execFileSync("mariadb", ["--no-defaults", "-S", socket, "-u", "root", "-e", "CREATE DATABASE wordpress"]);

  const wordpress = join(folder, "site");
  cpSync("/usr/share/wordpress", wordpress, {
    recursive: true,
    dereference: true,
    filter: (path) => !path.endsWith("wp-config.php"),
  });
  const port = await freePort();
  site = `http://127.0.0.1:${port}`;
  const constants = {
    ...{ DB_NAME: "wordpress", DB_USER: "root", DB_PASSWORD: "", DB_HOST: `localhost:${socket}` },
    ...{ DB_CHARSET: "utf8mb4", DB_COLLATE: "", DISABLE_WP_CRON: true, WP_HTTP_BLOCK_EXTERNAL: true },
    ...{ WP_SITEURL: site, WP_HOME: site },
  };
  const defined = Object.entries(constants).map(
    ([name, value]) => `define('${name}', ${typeof value === "string" ? `'${value}'` : value});`,
  );
  writeFileSync(
    join(wordpress, "wp-config.php"),
    `<?php ${defined.join("")} $table_prefix = 'wp_'; defined('ABSPATH') || define('ABSPATH', __DIR__ . '/'); require_once ABSPATH . 'wp-settings.php';`,
  );
  await writeWordPressPlugin(folder);
  const plugins = join(wordpress, "wp-content/plugins");
  rmSync(plugins, { recursive: true, force: true });
  mkdirSync(plugins);
  execFileSync("/usr/bin/python3", ["-m", "zipfile", "-e", join(folder, wordPressPluginName), plugins]);
  const install = `define('WP_INSTALLING', true); $_SERVER['HTTP_HOST'] = '127.0.0.1:${port}';
    require 'wp-load.php'; require 'wp-admin/includes/upgrade.php'; require_once ABSPATH . 'wp-admin/includes/plugin.php';
    wp_install('Site', 'admin', 'admin@example.com', true, '', 'password');
    $fault = activate_plugin('vodbox/vodbox.php'); if ($fault) { fwrite(STDERR, $fault->get_error_message()); exit(1); }`;
  execFileSync("/usr/bin/php", ["-r", install], { cwd: wordpress, stdio: "pipe" });
  const web = watched(
    spawn("/usr/bin/php", ["-S", `127.0.0.1:${port}`, "-t", wordpress], {
      detached: true,
      env: { ...process.env, PHP_CLI_SERVER_WORKERS: "4" },
    }),
  );
  started.push(web);
  await until("the site is ready", () => web.stderr().includes("started"));
});
afterAll(async () => {
  for (const { child, ended } of started.reverse()) {
    // PHP's server has processes of its own.
    process.kill(-(child.pid as number), "SIGTERM");
    await ended;
  }
  await platform.close();
  removeFolder(folder);
});

test("a video that is not public is chosen in the editor of WordPress, and plays in the published page", async () => {
  const title = 'Signed <film> & "more"';
  await untilReady(platform, await uploadClip(platform, { title }));
  await untilReady(platform, await uploadClip(platform, { title: "Open", playback_policy: "public" }));
  const page = await (await (await sharedBrowser()).newContext()).newPage();
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(error.message));
  await page.goto(`${site}/wp-login.php`);
  await page.fill("#user_login", "admin");
  await page.fill("#user_pass", "password");
  await page.click("#wp-submit");
  await page.waitForURL(/wp-admin/);

  const choose = async (name: string) => {
    await page.goto(`${site}/wp-admin/post-new.php`);
    await page.waitForSelector(".block-editor-writing-flow");
    await page.evaluate(() => {
      const { data, blocks } = (globalThis as any).wp;
      data.dispatch("core/preferences").set("core/edit-post", "welcomeGuide", false);
      data.dispatch("core/block-editor").insertBlock(blocks.createBlock("vodbox/video"));
    });
    await page.getByRole("searchbox").fill(name.slice(0, 4));
    await page.locator(".wp-block-vodbox-video").getByRole("button", { name }).press("Enter");
    await page.waitForSelector("iframe[src*='/embed/']");
    const link = await page.evaluate(async () => {
      const { data } = (globalThis as any).wp;
      data.dispatch("core/editor").editPost({ title: "A film", status: "publish" });
      await data.dispatch("core/editor").savePost();
      return data.select("core/editor").getPermalink() as string;
    });
    await page.goto(link);
    const frame = page.frameLocator("figure iframe");
    const video = frame.locator("video");
    await video.evaluate((element: any) => {
      element.muted = true;
      return element.play();
    });
    await expect
      .poll(() => video.evaluate((element: any) => element.currentTime), { timeout: 60_000 })
      .toBeGreaterThan(0.5);
    return (await page.locator("figure iframe").getAttribute("src")) as string;
  };

  // Without settings the editor says what to do.
  await page.goto(`${site}/wp-admin/post-new.php`);
  await page.waitForSelector(".block-editor-writing-flow");
  const refused = await page.evaluate(() =>
    (globalThis as any).wp.apiFetch({ path: "/vodbox/v1/assets" }).catch((error: any) => error.message),
  );
  expect(refused).toContain("Settings → vodbox");
  await page.goto(`${site}/wp-admin/options-general.php?page=vodbox`);
  await page.fill("#vodbox_server", platform.base);
  await page.fill("#vodbox_key", platform.key);
  await page.click("#submit");
  await page.waitForURL(/settings-updated/);
  // Saved again, the key stays, and the page does not show it.
  await page.click("#submit");
  await page.waitForURL(/settings-updated/);
  expect(await page.content()).not.toContain(platform.key);

  expect(await choose(title)).toContain(`${platform.base}/embed/s/`);
  // The share is made once.
  expect(await choose(title)).toContain(`${platform.base}/embed/s/`);
  const { body: assets } = await platform.as(platform.key).listAssets({ q: "Signed" });
  const { body: shares } = await platform.as(platform.key).listShares(assets[0].id);
  expect(shares.map(({ name }) => name)).toEqual(["WordPress"]);
  expect(await choose("Open")).toContain(`${platform.base}/embed/vid_`);
  expect(faults).toEqual([]);
  await page.context().close();

  // A visitor cannot use the routes of the editor.
  const anonymous = await fetch(`${site}/?rest_route=/vodbox/v1/assets`);
  expect(anonymous.status).toBe(401);
});
