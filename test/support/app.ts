import { join } from "node:path";
import { asc } from "drizzle-orm";
import pino from "pino";
import * as v from "valibot";
import { expect } from "vitest";
import { loadConfig } from "#platform/config/load.ts";
import { EVENTS, type EventType } from "#platform/events/catalog.ts";
import { SCOPES } from "#platform/http/caller.ts";
import { type Opened, openApp } from "#src/open.ts";
import { allScheduledTasks } from "#src/scheduled-tasks.ts";
import { events } from "#storage/db/schema.ts";
import { type Call, client } from "./client.ts";
import { conformance } from "./conform.ts";
import { atEnd, newFolder, removeFolder } from "./folder.ts";
import { copyMigrated } from "./migrated-copy.ts";
import { migratedSqld } from "./sqld.ts";
import { type As, typedClient } from "./typed-client.ts";

export type TestApp = {
  opened: Opened;
  call: Call;
  as: As;
  admin: string;
  worker: string;
  /** Advances the program's clock by `ms`. */
  advance(ms: number): void;
  /** Stops the program's clock, except for `advance`: signed URLs contain the second in which they expire. */
  stopClock(): void;
  /** Runs a scheduled task to its end. */
  runTask(name: string): Promise<void>;
  /** Events since the last call of this function: exact types, in order. */
  /** Those that every endpoint receives. */
  newEvents(): Promise<{ type: string; data: Record<string, unknown>; tenantId: number }[]>;
  tenant(fields?: Record<string, unknown>): Promise<{ id: number; slug: string }>;
  key(tenantId: number, scopes?: readonly string[]): Promise<string>;
  /** Changes the plan of a tenant. */
  plan(tenantId: number, name: string): Promise<void>;
  close(): Promise<void>;
};

/** The data of an event are exactly what its schema in the catalog says. */
function conformEvent(type: string, data: Record<string, unknown>): void {
  const { test: _, ...rest } = data;
  const { schema } = EVENTS[type as EventType];
  expect(v.parse(schema as v.GenericSchema, rest), type).toEqual(rest);
}

const BASE = "http://vodbox.test";

/** A data directory with a copy of the migrated database. A directory of the caller is used as it is. */
function newDataDir(): string {
  const folder = newFolder();
  copyMigrated(folder);
  return folder;
}

/**
 * The whole program in this process with its public API: real database, real storage, a controlled clock. With
 * `VODBOX_TEST_DATABASE=sqld` its database is a remote server, not a file.
 */
export async function testApp(flags: Record<string, unknown> = {}, dataDir = newDataDir()): Promise<TestApp> {
  const remote = process.env.VODBOX_TEST_DATABASE === "sqld" ? await migratedSqld(join(dataDir, "sqld")) : null;
  const database = remote ? { database_url: remote.url } : {};
  const config = loadConfig({
    flags: { data_dir: dataDir, port: 0, min_free_bytes: 0, base_url: BASE, ...database, ...flags },
    env: {},
  });
  let offset = 0;
  let stopped: number | null = null;
  const clock = { now: () => (stopped ?? Date.now()) + offset };
  const opened = await openApp(config, { log: pino({ level: "silent" }), clock });
  const { app, server, egress } = opened;
  const tasks = allScheduledTasks(app, { authenticator: server.authenticator, egress });
  const conforms = conformance(opened.routes);
  // Storage URLs may belong to another server.
  const isOurs = (address: string) => new URL(address, BASE).origin === BASE;
  const plain = client(BASE, (request) => (isOurs(request.url) ? server.fetch(request) : fetch(request)));
  const call: Call = async (method, path, options) => {
    const answer = await plain(method, path, options);
    if (isOurs(path)) conforms(method, new URL(path, BASE).pathname, answer);
    return answer;
  };
  const as = typedClient(call);
  const admin = app.secrets.admin_token;
  let seen = 0;
  let slugs = 0;
  let closed = false;
  const running = new Set<Promise<unknown>>();
  const close = async () => {
    if (closed) return;
    closed = true;
    opened.beginStop();
    await Promise.allSettled(running);
    await opened.close();
    await remote?.stop();
    removeFolder(dataDir);
  };
  atEnd(close);
  return {
    opened,
    call,
    as,
    admin,
    worker: app.secrets.worker_token,
    advance: (ms) => {
      offset += ms;
    },
    stopClock: () => {
      stopped = Date.now();
    },
    async runTask(name) {
      const task = tasks.find((each) => each.name === name);
      if (!task) throw new Error(`There is no task ${name}`);
      const run = task.run();
      running.add(run);
      await run.finally(() => running.delete(run));
    },
    async newEvents() {
      const rows = await app.db.select().from(events).orderBy(asc(events.id)).all();
      const fresh = rows.filter((row) => row.id > seen);
      for (const { type, data } of fresh) conformEvent(type, data);
      seen = rows.at(-1)?.id ?? seen;
      const isDefault = ({ type }: { type: string }) => EVENTS[type as EventType].isDefault;
      return fresh.filter(isDefault).map(({ type, data, tenantId }) => ({ type, data, tenantId }));
    },
    async tenant(fields = {}) {
      const slug = `tenant-${++slugs}`;
      const made = await as({ admin }).createTenant({ name: slug, slug, ...fields });
      if (made.status !== 201) throw new Error(made.text);
      return made.body;
    },
    async key(tenantId, scopes: readonly string[] = SCOPES) {
      const made = await as({ admin }).createApiKey({ tenant_id: tenantId, scopes });
      if (made.status !== 201) throw new Error(made.text);
      return made.body.token;
    },
    async plan(tenantId, plan_name) {
      const changed = await as({ admin }).updateTenant(tenantId, { plan_name });
      if (changed.status !== 200) throw new Error(changed.text);
    },
    close,
  };
}
