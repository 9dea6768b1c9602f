import { type Client, createClient, type InArgs, type InStatement, type Transaction } from "@libsql/client";
import { drizzle } from "drizzle-orm/libsql";
import type { Database, OpenOptions, Schema } from "./database.ts";
import { DatabaseBusy, isBusy } from "./failures.ts";
import { boundArgs } from "./values.ts";
import { backoff, LOCK_WAIT_MS } from "./wait.ts";

/**
 * A remote libSQL server (`libsql://`, `http(s)://`). Durability and order of writes are the server's; writes of this
 * process still go one at a time, since the server has one write lock and would make them wait there.
 */
export function openRemote<S extends Schema>(options: OpenOptions<S>): Database<S> {
  const { url, authToken, schema, lockWaitMs = LOCK_WAIT_MS } = options;
  const client = createClient({ url, ...(authToken ? { authToken } : {}) });
  const db = drizzle({ client: withLocalValues(client), schema });
  let last: Promise<unknown> = Promise.resolve();
  let commits = 0;
  let closed = false;
  return {
    file: null,
    db,
    commits: () => commits,
    writes: () => null,
    write(work) {
      if (closed) return Promise.reject(new Error("The database is closed."));
      const done = last
        .then(() => retried(() => db.transaction(work), lockWaitMs))
        // Also of one that failed: nobody knows how far it came.
        .finally(() => commits++);
      last = done.catch(() => {});
      return done;
    },
    async close() {
      closed = true;
      await last;
      client.close();
    },
  };
}

async function retried<T>(work: () => Promise<T>, limitMs: number): Promise<T> {
  const since = performance.now();
  for (let attempt = 0; ; attempt++) {
    try {
      return await work();
    } catch (error) {
      if (!isBusy(error)) throw error;
      if (performance.now() - since > limitMs) throw new DatabaseBusy(performance.now() - since, error);
      await backoff(attempt);
    }
  }
}

/** Arguments go out as they are bound locally: @libsql/client sends every number as a float. */
function withLocalValues(client: Client): Client {
  const converted = (one: InStatement, args?: InArgs): InStatement => {
    if (typeof one !== "string") return { sql: one.sql, args: boundArgs(one.args) as InArgs };
    return { sql: one, args: boundArgs(args) as InArgs };
  };
  const wrap = <C extends Client | Transaction>(target: C): C =>
    new Proxy(target, {
      get(of, name) {
        if (name === "execute") return (one: InStatement, args?: InArgs) => of.execute(converted(one, args));
        if (name === "batch") return (all: InStatement[]) => of.batch(all.map((one) => converted(one)));
        if (name === "transaction") return async () => wrap(await (of as Client).transaction("write"));
        const value = Reflect.get(of, name, of);
        return typeof value === "function" ? value.bind(of) : value;
      },
    });
  return wrap(client);
}
