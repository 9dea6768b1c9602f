import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { everyNth } from "#test/support/amount.ts";
import { json, refused } from "#test/support/commands/outcome.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { run } from "#test/support/process.ts";

test("wrong usage is 2 with one sentence", async () => {
  const cwd = emptyFolder();
  const wrong: [string, RegExp][] = [
    ["bogus", /unknown command 'bogus'/],
    ["--data elsewhere bogus", /unknown command 'bogus'/],
    ["--bogus", /unknown option '--bogus'/],
    ["serve --bogus", /unknown option '--bogus'/],
    ["serve extra", /too many arguments for 'serve'/],
    ["serve --port", /--port needs a value/],
    ["admin bogus", /unknown command 'bogus'/],
    ["admin tenant bogus", /unknown command 'bogus'/],
    ["admin tenant lst", /Did you mean list\?/],
    ["admin tenant show", /missing required argument 'tenant'/],
    ["admin tenant show a b", /too many arguments/],
    ["admin tenant create --name N", /'--slug <S>' not specified/],
    ["admin key issue", /'--tenant <T>' not specified/],
    ["admin key issue --tenant t --expires-in soon", /--expires-in soon is not a duration; use 30d, 12h or 45m/],
    ["admin token show bogus", /There is no token bogus; tokens are admin, worker, live, metrics/],
    ["admin token rotate bogus", /There is no token bogus/],
    ["worker", /Specify the server/],
    ["worker --server http://127.0.0.1:1", /VODBOX_WORKER_TOKEN/],
    ["worker --server http://127.0.0.1:1 --token t --concurrency 0", /--concurrency must be a whole number/],
    ["push", /Specify files to push, or --watch/],
    ["push a.mp4 --data nowhere", /No server runs on .*nowhere/],
    ["push a.mp4 --server nowhere --key k", /--server nowhere is not a URL/],
    ["push a.mp4 --server http://127.0.0.1:1", /VODBOX_KEY/],
    ["push --server http://127.0.0.1:1 --key k", /Specify files to push, or --watch/],
    ["push a.mp4 --watch . --server http://127.0.0.1:1 --key k", /Specify files to push, or --watch/],
    ["push a.mp4 b.mp4 --title T --server http://127.0.0.1:1 --key k", /--title requires a single file/],
    ["push a.mp4 --tag T --server http://127.0.0.1:1 --key k", /--tag T is not a tag; use name=value/],
    ["push a.mp4 --jobs 0 --server http://127.0.0.1:1 --key k", /--jobs must be a whole number from 1 to 64/],
    ["push a.mp4 --collection x --server http://127.0.0.1:1 --key k", /--collection must be the id/],
    ["push a.mp4 --playback-policy x --server http://127.0.0.1:1 --key k", /--playback-policy must be public/],
  ];
  await json(["admin", "tenant", "create", "--name", "T", "--slug", "t"], { cwd });
  await Promise.all(
    everyNth(wrong, 3).map(async ([line, sentence]) =>
      expect.soft(await refused(line.split(" "), 2, { cwd }), line).toMatch(sentence),
    ),
  );
});

test("--help works everywhere, and vodbox alone lists the commands", async () => {
  const commands = ["", "serve", "worker", "demo", "push", "admin", "admin config", "admin doctor"];
  const nested = ["tenant create", "tenant list", "tenant show", "tenant update", "tenant suspend"].concat(
    ["key issue", "key list", "key revoke", "token show", "token rotate"].map((words) => words),
  );
  await Promise.all(
    everyNth([...commands, ...nested.map((words) => `admin ${words}`)], 4).map(async (words) => {
      const help = await run([...words.split(" ").filter(Boolean), "--help"]);
      expect.soft(help, words).toMatchObject({ code: 0, stderr: "" });
      expect.soft(help.stdout, words).toMatch(new RegExp(`^Usage: vodbox ?${words}[^\n]*\n`));
      expect.soft(help.stdout.split("\n").every((line) => line.length <= 80)).toBe(true);
    }),
  );
  const alone = await run([]);
  const help = await run(["help"]);
  expect([alone.code, help.code]).toEqual([0, 0]);
  expect(alone.stdout).toBe(help.stdout);
  for (const command of ["serve", "worker", "demo", "push", "admin"]) expect(alone.stdout).toContain(`\n  ${command} `);
});

test("all invalid settings are named at once: flags, environment and file", async () => {
  const cwd = emptyFolder();
  const file = join(cwd, "settings.toml");
  writeFileSync(file, 'port = "x"\nunheard_of = 1\nadmin_token = "short"\n[rate_limit]\nuploads = "many"\n');
  const sentence = await refused(["serve", "--config", file, "--workers", "-1", "--storage", "tape"], 2, {
    cwd,
    env: { VODBOX_LEASE_SECONDS: "1", VODBOX_WEBHOOK_ALLOW_CIDRS: "10.0.0.0/99" },
  });
  for (const fault of [
    `port in ${file} must be a whole number (it is "x")`,
    `unheard_of in ${file} is not a vodbox setting`,
    `admin_token in ${file} must have at least 16 characters;`,
    `rate_limit_uploads in ${file} must be REQUESTS/SECONDS`,
    '--workers must be at least 0 (it is "-1")',
    "--storage must be one of local, s3, none",
    "VODBOX_LEASE_SECONDS must be at least 2",
    "VODBOX_WEBHOOK_ALLOW_CIDRS must be a comma-separated list",
  ])
    expect.soft(sentence).toContain(fault);
  // A secret is never shown, not even an invalid one.
  expect(sentence).not.toContain("short");
});

test("a configuration file that cannot be read is named", async () => {
  const cwd = emptyFolder();
  const files = { "broken.toml": "port = ", "broken.json": "{", "list.json": "[]" };
  for (const [name, content] of Object.entries(files)) writeFileSync(join(cwd, name), content);
  for (const name of ["missing.toml", ...Object.keys(files)])
    expect(await refused(["serve", "--config", name], 2, { cwd })).toContain(join(cwd, name));
});

test("a setting comes from its flag, else the environment, else the file, else the default; secrets are masked", async () => {
  const cwd = emptyFolder();
  const secret = "the-token-in-the-file";
  writeFileSync(
    join(cwd, "vodbox.toml"),
    `host = "10.0.0.1"\nport = 1\nlease_seconds = 30\nlive_token = "${secret}"\n[s3]\nbucket = "b"\n`,
  );
  const env = { VODBOX_PORT: "2", VODBOX_LEASE_SECONDS: "31", VODBOX_WORKER_TOKEN: `${secret}-2`, VODBOX_ENV: "" };
  const args = ["admin", "config", "--lease-seconds", "32"];
  const rows = (await json(args, { cwd, env })) as { setting: string; value: unknown; origin: string }[];
  const of = (name: string) => {
    const { value, origin } = rows.find((row) => row.setting === name) ?? {};
    return [value, origin];
  };
  expect(of("lease_seconds")).toEqual([32, "flag"]);
  expect(of("port")).toEqual([2, "environment"]);
  expect(of("host")).toEqual(["10.0.0.1", "file"]);
  expect(of("s3_bucket")).toEqual(["b", "file"]);
  expect(of("max_attempts")).toEqual([5, "default"]);
  expect(of("env")).toEqual(["production", "default"]);
  expect(of("live_token")).toEqual(["********", "file"]);
  expect(of("worker_token")).toEqual(["********", "environment"]);
  expect(of("data_dir")).toEqual([join(cwd, "vodbox-data"), "default"]);
  const shown = await run(args, { cwd, env: { ...env, VODBOX_TYPO: "1" } });
  expect(shown.code).toBe(0);
  expect(shown.stdout).toMatch(/^lease_seconds +32 +flag/m);
  expect(shown.stdout).toContain(`Configuration file: ${join(cwd, "vodbox.toml")}`);
  expect(shown.stdout).not.toContain(secret);
  expect(shown.stderr).toBe("vodbox: VODBOX_TYPO is not a vodbox setting and is ignored\n");
});

test("settings that others require are reported at once, before anything is created; missing files are named", async () => {
  const cwd = emptyFolder();
  const data = join(cwd, "data");
  const sentence = await refused(["serve", "--data", data, "--tls-cert", "/nowhere/tls.crt"], 2, {
    cwd,
    env: { VODBOX_STORAGE: "s3", VODBOX_PAYMENTS: "stripe" },
  });
  for (const name of ["VODBOX_S3_BUCKET", "VODBOX_STRIPE_KEY", "VODBOX_TLS_KEY"]) expect.soft(sentence).toContain(name);
  const pair = ["--tls-cert", "/nowhere/tls.crt", "--tls-key", "/nowhere/tls.key"];
  for (const more of [[], ["--processes", "2"]]) {
    const told = await refused(["serve", "--data", data, ...pair, ...more], 1, { cwd });
    expect.soft(told).toContain("The file /nowhere/tls.crt does not exist;");
    expect.soft(told).not.toContain("ENOENT");
  }
  const prices = await refused(["serve", "--data", data], 2, { cwd, env: { VODBOX_PRICES: "/nowhere/prices.toml" } });
  expect(prices).toContain("VODBOX_PRICES names a file that does not exist");
  expect(await refused(["serve", "--config", "nope.toml"], 2, { cwd })).toMatch(
    /the configuration file .*nope\.toml does not exist/,
  );
  expect(readdirSync(cwd)).toEqual([]);
});

test("passwords inside URLs are masked; an invalid limit is wrong usage", async () => {
  const cwd = emptyFolder();
  const env = {
    VODBOX_DATABASE_URL: "https://user:hunter22@db.example.com/v",
    VODBOX_S3_ENDPOINT: "http://s3.example.com",
  };
  const shown = await json(["admin", "config"], { cwd, env });
  expect(JSON.stringify(shown)).not.toContain("hunter22");
  const of = (name: string) => shown.find((row: { setting: string }) => row.setting === name).value;
  expect(of("database_url")).toBe("https://user:********@db.example.com/v");
  expect(of("s3_endpoint")).toBe("http://s3.example.com");
  await json(["admin", "tenant", "create", "--name", "T", "--slug", "t", "--data", join(cwd, "data")]);
  for (const limit of ["0", "501", "abc"])
    expect(await refused(["admin", "audit", "--limit", limit, "--data", join(cwd, "data")], 2)).toContain("--limit");
});
