import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { BatchCond, openHttp, openWs, Stmt, type Stream } from "@libsql/hrana-client";
import { HttpStream } from "#storage/db/hrana-http.ts";
import { HranaServer } from "#storage/db/hrana-server.ts";
import type { HranaStream } from "#storage/db/hrana-stream.ts";
import { type Step, toError, toResult, toWire } from "#storage/db/hrana-wire.ts";
import { startSqld } from "../sqld.ts";
import { workFolder } from "./processes.ts";
import { alternately, compare, type Result } from "./result.ts";

const ROUNDS = 5;
const ROUND_MS = 2000;
const READERS = 8;
const ROWS = 50;
/** Changes that the write queue sends as one transaction. */
const WRITES = 20;
const INSERT = "insert into t (a, b, n) values (?, ?, ?)";
const VALUES = ["x".repeat(200), "b", 5n];
const SELECT = `select * from t where id > ? limit ${ROWS}`;

/** Our Hrana client compared with libSQL's own, over both transports, against the same sqld. */
export async function benchHrana(): Promise<Result[]> {
  const work = workFolder();
  const sqld = await startSqld(join(work.path, "db"));
  try {
    const server = new HranaServer({ url: sqld.url, authToken: undefined });
    const socket = openWs(sqld.url.replace("http", "ws"), undefined, 3);
    const http = openHttp(sqld.url);
    await socket.getVersion();
    await server.stream().execute({ sql: "create table t (id integer primary key, a text, b text, n integer)" });
    const opened = performance.now() + 10_000;
    while (!server.hasSocket && performance.now() < opened) await sleep(10);
    const streams = {
      WebSocket: { ours: () => server.stream(), theirs: () => socket.openStream() },
      HTTP: { ours: () => new HttpStream(server), theirs: () => http.openStream() },
    };
    const results: Result[] = [];
    for (const [transport, { ours, theirs }] of Object.entries(streams)) {
      results.push(
        compare(
          `a transaction of ${WRITES} inserts, ${transport}`,
          await alternately(ROUNDS, {
            ours: () => rate(1, ours, write),
            theirs: () => rate(1, theirs, writeByLibrary),
          }),
          ABOUT,
        ),
        compare(
          `a query of ${ROWS} rows, ${READERS} at once, ${transport}`,
          await alternately(ROUNDS, {
            ours: () => rate(READERS, ours, read),
            theirs: () => rate(READERS, theirs, readByLibrary),
          }),
          ABOUT,
        ),
      );
    }
    socket.close();
    http.close();
    server.close();
    return results;
  } finally {
    await sqld.stop();
    work.remove();
  }
}

const ABOUT = { reference: "@libsql/hrana-client", unit: "/s", bar: { atLeast: 1 } };

/** Operations a second by `parallel` streams. */
async function rate<S extends { close(): void }>(
  parallel: number,
  open: () => S,
  operate: (stream: S) => Promise<void>,
) {
  const from = performance.now();
  let count = 0;
  const one = async () => {
    const stream = open();
    for (; performance.now() - from < ROUND_MS; count++) await operate(stream);
    stream.close();
  };
  await Promise.all(Array.from({ length: parallel }, one));
  return (count / (performance.now() - from)) * 1000;
}

async function write(stream: HranaStream): Promise<void> {
  const inserts = Array.from({ length: WRITES }, () => toWire({ sql: INSERT, args: VALUES }));
  const steps = [{ sql: "begin immediate" }, ...inserts, { sql: "commit" }].map(
    (stmt, index): Step => (index === 0 ? { stmt } : { stmt, condition: { type: "ok", step: index - 1 } }),
  );
  const { step_errors } = await stream.batch(steps);
  for (const error of step_errors) if (error) throw toError(error);
}

async function writeByLibrary(stream: Stream): Promise<void> {
  const batch = stream.batch();
  let last = batch.step();
  const done: Promise<unknown>[] = [last.run("begin immediate")];
  const then = (stmt: string | Stmt) => {
    const step = batch.step().condition(BatchCond.ok(last));
    done.push(step.run(stmt));
    last = step;
  };
  for (let n = 0; n < WRITES; n++) then(new Stmt(INSERT).bindIndexes(VALUES));
  then("commit");
  await batch.execute();
  await Promise.all(done);
}

async function read(stream: HranaStream): Promise<void> {
  const { rows } = toResult(await stream.execute(toWire({ sql: SELECT, args: [10n] })));
  if (rows.length !== ROWS) throw new Error(`${rows.length} rows`);
}

async function readByLibrary(stream: Stream): Promise<void> {
  const { rows } = await stream.query(new Stmt(SELECT).bindIndexes([10n]));
  if (rows.length !== ROWS) throw new Error(`${rows.length} rows`);
}
