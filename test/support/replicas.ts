import { rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import Sqlite from "libsql";
import { expect } from "vitest";
import { until } from "./descendants.ts";
import { emptyFolder } from "./folder.ts";
import { freshly } from "./fresh.ts";
import { type Ended, type RunningServer, run, startServer } from "./process.ts";
import { typedClient } from "./typed-client.ts";

type Env = Record<string, string>;

export type Replicated = {
  dataDir: string;
  /** Starts a server; `args` such as `--processes 2`. */
  serve(args?: string[]): Promise<RunningServer>;
  /** `vodbox admin …` with the settings of the server. */
  admin(...args: string[]): Promise<Ended>;
  /** Restores to a directory, by default the server's, which must be empty. Returns what it printed. */
  restore(options?: { at?: number; to?: string }): Promise<string>;
  /** Removes the data directory. */
  lose(): void;
};

/** A data directory with a replica at `replica`. */
export function replicated(replica: string, more: Env = {}): Replicated {
  const dataDir = join(emptyFolder(), "data");
  const env = { VODBOX_REPLICA: replica, VODBOX_LOG_LEVEL: "info", VODBOX_LOG_FORMAT: "json", ...more };
  const admin = (...args: string[]) => run(["admin", ...args], { env: { ...env, VODBOX_LOG_LEVEL: "error" } });
  return {
    dataDir,
    serve: (args = []) => startServer(dataDir, { env, args }),
    admin,
    async restore({ at, to = dataDir } = {}) {
      const time = at === undefined ? [] : ["--at", new Date(at).toISOString()];
      const ended = await admin("restore", "--from", replica, ...time, "--data", to);
      expect(ended).toMatchObject({ code: 0 });
      return ended.stdout;
    },
    lose: () => rmSync(dataDir, { recursive: true, force: true }),
  };
}

export type Load = {
  /** Slugs of acknowledged tenants, with the time of the acknowledgment. */
  acknowledged: Map<string, number>;
  /** Every tenant that was sent, with the time of the request. */
  sent: Map<string, number>;
  /** Resolves after `count` further acknowledgments. */
  more(count: number): Promise<void>;
  /** Ends the load; resolves when no request is in progress. */
  stop(): Promise<void>;
};

let tenants = 0;

/** Creates tenants with several clients at once until it is stopped. Requests to a dead server are not counted. */
export function load({ base, admin }: RunningServer, { clients = 8 } = {}): Load {
  const call = freshly(base);
  const acknowledged = new Map<string, number>();
  const sent = new Map<string, number>();
  let isOver = false;
  const client = async () => {
    while (!isOver) {
      const slug = `tenant-${++tenants}`;
      sent.set(slug, Date.now());
      const answer = await typedClient(call)({ admin })
        .createTenant({ name: slug, slug })
        .catch(() => null);
      if (answer?.status === 201) acknowledged.set(slug, Date.now());
      else if (!isOver) await sleep(20);
    }
  };
  const running = Promise.all(Array.from({ length: clients }, client));
  return {
    acknowledged,
    sent,
    async more(count) {
      const size = acknowledged.size + count;
      await until(`${count} acknowledgments`, async () => acknowledged.size >= size, 120_000);
    },
    async stop() {
      isOver = true;
      await running;
    },
  };
}

/** Slugs of all tenants in a stopped data directory. */
export function slugsIn(dataDir: string): Set<string> {
  const database = new Sqlite(join(dataDir, "vodbox.db"), { readonly: true } as Sqlite.Options);
  try {
    return new Set(
      (database.prepare("SELECT slug FROM tenants").all([]) as { slug: string }[]).map(({ slug }) => slug),
    );
  } finally {
    database.close();
  }
}

/** Everything in the database of a stopped data directory, by table. */
export function contentsOf(dataDir: string): Record<string, unknown[]> {
  const database = new Sqlite(join(dataDir, "vodbox.db"), { readonly: true } as Sqlite.Options);
  try {
    const names = database
      .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name")
      .all([]) as { name: string }[];
    return Object.fromEntries(names.map(({ name }) => [name, database.prepare(`SELECT * FROM "${name}"`).all([])]));
  } finally {
    database.close();
  }
}

type Ready = { status: number; replica: { lag_seconds: number; error: string | null } };

export async function readiness({ base }: RunningServer): Promise<Ready> {
  const { status, body } = await freshly(base)("GET", "/readyz");
  return { status, replica: body.replica };
}

/** Resolves when the replica has everything that was written before the call. */
export async function caughtUp(server: RunningServer): Promise<void> {
  // The log is observed every 50 ms: before that, a write is not known.
  let since = performance.now();
  await until("the replica to catch up", async () => {
    const { replica } = await readiness(server);
    if (replica.error !== null || replica.lag_seconds > 0) since = performance.now();
    return performance.now() - since > 200;
  });
}

/** The generations that the log of a server reports as begun and as continued. */
export const generationsOf = (server: RunningServer) => {
  const lines = server.stderr().split("\n").filter(Boolean);
  const of = (text: string) =>
    lines.filter((line) => line.includes(text)).map((line) => JSON.parse(line).generation as string);
  return { begun: of("begins a new generation"), continued: of("the replica continues") };
};
