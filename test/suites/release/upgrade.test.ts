import { execFileSync } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import Sqlite from "libsql";
import { describe, expect, test } from "vitest";
import { freePort } from "#scripts/free-port.ts";
import { amount } from "#test/support/amount.ts";
import { client } from "#test/support/client.ts";
import { refused } from "#test/support/commands/outcome.ts";
import type { Expected } from "#test/support/data/make.ts";
import { atEnd, emptyFolder } from "#test/support/folder.ts";
import { type RunningServer, run, startServer, vodbox } from "#test/support/process.ts";
import { typedClient } from "#test/support/typed-client.ts";

const FIXTURES = join(import.meta.dirname, "../../support/data");
const VERSIONS = globSync("*.tar.gz", { cwd: FIXTURES }).map((name) => basename(name, ".tar.gz"));
/** More rows, so that requests arrive during the migration. */
const MORE_ASSETS = amount(8000, 20_000);
const CLIENTS = 8;
/** After a request that no server answered, and between two looks. */
const PAUSE_MS = 5;
const DAY_MS = 86_400_000;
const SETTINGS = {
  VODBOX_RATE_LIMIT_UPLOADS: "1000000/60",
  VODBOX_WEBHOOK_ALLOW_CIDRS: "127.0.0.0/8",
  VODBOX_LOG_LEVEL: "info",
  VODBOX_LOG_FORMAT: "json",
};

function dataOf(version: string): { data: string; expected: Expected } {
  const folder = emptyFolder();
  execFileSync("tar", ["-xzpf", join(FIXTURES, `${version}.tar.gz`), "-C", folder, "--no-same-owner"]);
  const data = join(folder, "data");
  // It was made long ago: what is open must not end while the test compares it.
  const database = new Sqlite(join(data, "vodbox.db"));
  database.exec(`UPDATE uploads SET expires_at = ${Date.now() + DAY_MS} WHERE status = 'pending'`);
  database.close();
  return { data, expected: JSON.parse(readFileSync(join(data, "expected.json"), "utf8")) };
}

/** Copies a draft to the second tenant. The columns are those of the old schema. */
function enlarge(data: string): void {
  const database = new Sqlite(join(data, "vodbox.db"));
  const names = database.prepare("SELECT name FROM pragma_table_info('assets')").all() as { name: string }[];
  const columns = names.map(({ name }) => name).filter((name) => name !== "id");
  const changed: Record<string, string> = {
    external_id: "'copy-' || i",
    source_key: "'tenants/2/sources/copy-' || i",
    tenant_id: "2",
    collection_id: "NULL",
  };
  database.exec(`WITH RECURSIVE n (i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < ${MORE_ASSETS})
    INSERT INTO assets (${columns}) SELECT ${columns.map((name) => changed[name] ?? name)}
      FROM n, (SELECT * FROM assets WHERE title = 'Draft 1')`);
  database.close();
}

type Load = {
  statuses: Map<number, number>;
  titles: string[];
  until(acknowledged: number): Promise<void>;
  stop(): Promise<void>;
};

/** Clients that read and write all the time, whether a server listens or not. */
function load(base: string, key: string): Load {
  const statuses = new Map<number, number>();
  const titles: string[] = [];
  const call = client(base);
  let isOver = false;
  let next = 0;
  const one = async () => {
    while (!isOver) {
      const title = `Written ${next++}`;
      const body = { filename: "a.mp4", bytes_expected: 10, title };
      try {
        const written = await typedClient(call)(key).initiateUpload(body);
        if (written.status === 201) titles.push(title);
        const read = await typedClient(call)(key).listAssets({ limit: 5 });
        for (const { status } of [written, read]) statuses.set(status, (statuses.get(status) ?? 0) + 1);
      } catch {
        // Real time: the pace of a client while no server listens, or after it was killed.
        await sleep(PAUSE_MS);
      }
    }
  };
  const clients = Array.from({ length: CLIENTS }, one);
  const stop = async () => {
    isOver = true;
    await Promise.all(clients);
  };
  atEnd(stop);
  return {
    statuses,
    titles,
    stop,
    async until(acknowledged) {
      while (titles.length < acknowledged) await sleep(PAUSE_MS);
    },
  };
}

/** Each server has another port, and sends the webhooks that are due. */
const withoutBase = (value: unknown): object =>
  JSON.parse(
    JSON.stringify(value).replaceAll(/http:\/\/127\.0\.0\.1:\d+|(?<="failure_count":)\d+/g, (text) =>
      text.startsWith("http") ? "" : "0",
    ),
  );

async function expectUnchanged({ call }: RunningServer, { keys, answers, media }: Expected): Promise<void> {
  for (const [path, answer] of Object.entries(answers)) {
    const now = await call("GET", path, { key: keys[0] as string });
    expect([path, now.status]).toEqual([path, 200]);
    expect(withoutBase(now.body)).toMatchObject(withoutBase(answer));
  }
  expect(await call("GET", media.path)).toMatchObject({ status: 200, text: media.text });
}

async function titlesOf({ call }: RunningServer, key: string): Promise<Set<string>> {
  const titles = new Set<string>();
  for (let path: string | null = "/api/v1/assets?limit=100&query=Written"; path; ) {
    const { body, headers } = await call("GET", path, { key });
    for (const { title } of body) titles.add(title);
    path = /<([^>]+)>; rel="next"/.exec(headers.get("link") ?? "")?.[1] ?? null;
  }
  return titles;
}

test("there is a data directory of every released version", () => {
  const changelog = readFileSync(join(FIXTURES, "../../../CHANGELOG.md"), "utf8");
  const released = [...changelog.matchAll(/^## (\d+\.\d+\.\d+) - \d{4}-/gm)].map(([, version]) => version);
  expect(VERSIONS.sort()).toEqual(released.sort());
});

describe.each(VERSIONS)("a data directory of %s", (version) => {
  test("is upgraded under load, also after kill -9 during the migration", async () => {
    const { data, expected } = dataOf(version);
    enlarge(data);
    const port = String(await freePort());
    const clients = load(`http://127.0.0.1:${port}`, expected.keys[1] as string);
    const options = { env: SETTINGS, args: ["--port", port] };

    const killed = vodbox(["serve", "--data", data, "--port", port, "--workers", "0"], { env: SETTINGS });
    killed.child.stderr?.on("data", (text) => {
      if (String(text).includes("migrating the database")) killed.child.kill("SIGKILL");
    });
    expect(await killed.ended).toMatchObject({ signal: "SIGKILL" });
    expect(clients.titles).toEqual([]);

    const server = await startServer(data, options);
    expect(server.stderr()).toContain("migrating the database");
    await expectUnchanged(server, expected);
    await clients.until(200);
    server.child.kill("SIGKILL");
    await server.ended;

    const again = await startServer(data, options);
    await clients.until(clients.titles.length + 50);
    await clients.stop();
    await expectUnchanged(again, expected);
    const present = await titlesOf(again, expected.keys[1] as string);
    expect(clients.titles.filter((title) => !present.has(title))).toEqual([]);
    expect([...clients.statuses.keys()].filter((status) => status >= 400 && status !== 503)).toEqual([]);
    const doctor = await run(["admin", "doctor", "--json", "--data", data], {
      env: { ...SETTINGS, VODBOX_ADMIN_TOKEN: again.admin },
    });
    expect(doctor).toMatchObject({ code: 0 });
  });
});

test("a program that is older than the database refuses it, and says what to do", async () => {
  const data = emptyFolder();
  const server = await startServer(data);
  server.child.kill("SIGTERM");
  await server.ended;
  const database = new Sqlite(join(data, "vodbox.db"));
  database.exec("INSERT INTO _migrations VALUES ('9999_later.sql', 'x', '2030-01-01T00:00:00Z')");
  database.close();
  const before = readFileSync(join(data, "vodbox.db"));
  const sentence = await refused(["serve", "--data", data, "--port", "0"], 1);
  expect(sentence).toMatch(
    /The database is newer than this vodbox.*9999_later.*Run the version that wrote it, or a later one; or restore the copy/,
  );
  expect(readFileSync(join(data, "vodbox.db")).equals(before)).toBe(true);
});
