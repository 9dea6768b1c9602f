import type { InStatement, ResultSet, Value } from "@libsql/client";
import { LibsqlError } from "@libsql/core/api";
import type { Executor } from "./client.ts";
import { isUnreachable } from "./failures.ts";
import type { HranaServer } from "./hrana-server.ts";
import type { HranaStream } from "./hrana-stream.ts";
import { type Step, toError, toResult, toValues, toWire } from "./hrana-wire.ts";

/** Streams for reads: each is a connection at the server, and sqld allows 128 in total. */
const LANES = 4;
/** Statements that are sent together when more wait than there are lanes; the slowest delays the others. */
const TOGETHER = 16;

type Read = {
  run: (stream: HranaStream) => Promise<unknown>;
  isSecond: boolean;
  resolve: (value: unknown) => void;
  reject: (error: unknown) => void;
};

/**
 * Runs reads, each on the newest committed state, on a few streams that are reused: opening one costs the server more
 * than a statement. A statement without a response is retried once, on another stream.
 */
export class RemoteReader implements Executor {
  readonly #server: HranaServer;
  readonly #waiting: Read[] = [];
  readonly #free: HranaStream[] = [];
  #busy = 0;
  #closed = false;

  constructor(server: HranaServer) {
    this.#server = server;
  }

  async run(statement: InStatement): Promise<ResultSet> {
    const stmt = toWire(statement);
    return toResult(await this.#read((stream) => stream.execute(stmt)));
  }

  async values(statement: InStatement): Promise<Value[][]> {
    const stmt = toWire(statement);
    return toValues(await this.#read((stream) => stream.execute(stmt)));
  }

  /** All in one snapshot. */
  async batch(statements: InStatement[]): Promise<ResultSet[]> {
    const inner = statements.map((one, i): Step => ({ stmt: toWire(one), condition: { type: "ok", step: i } }));
    const end: Step = { stmt: { sql: "ROLLBACK" }, condition: { type: "ok", step: 0 } };
    const steps = [{ stmt: { sql: "BEGIN" } }, ...inner, end];
    const { step_results, step_errors } = await this.#read((stream) => stream.batch(steps));
    return statements.map((_, i) => {
      const result = step_results[i + 1];
      if (result) return toResult(result);
      throw toError(
        step_errors.find((one) => one !== null) ?? { message: "The server did not run all statements of a batch." },
      );
    });
  }

  begin(): never {
    throw new LibsqlError(
      "Readers do not support transactions: use write(), or batch() for one snapshot.",
      "UNSUPPORTED",
    );
  }

  close(): void {
    this.#closed = true;
    for (const stream of this.#free.splice(0)) stream.close();
  }

  #read<T>(run: (stream: HranaStream) => Promise<T>): Promise<T> {
    if (this.#closed) return Promise.reject(new LibsqlError("The database is closed.", "CLIENT_CLOSED"));
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ run, isSecond: false, resolve: resolve as (value: unknown) => void, reject });
      this.#pump();
    });
  }

  #pump(): void {
    while (this.#waiting.length > 0 && this.#busy < LANES) {
      const together = Math.min(TOGETHER, Math.ceil(this.#waiting.length / (LANES - this.#busy)));
      void this.#serve(this.#waiting.splice(0, together));
    }
  }

  async #serve(reads: Read[]): Promise<void> {
    this.#busy++;
    const stream = this.#take();
    await Promise.all(reads.map((read) => this.#answer(read, stream)));
    this.#busy--;
    if (this.#closed) stream.close();
    else if (!stream.isStale) this.#free.push(stream);
    this.#pump();
  }

  #take(): HranaStream {
    const idle = this.#free.pop();
    if (idle && !idle.isStale) return idle;
    idle?.close();
    return this.#server.stream();
  }

  async #answer(read: Read, stream: HranaStream): Promise<void> {
    try {
      read.resolve(await read.run(stream));
    } catch (error) {
      if (!isUnreachable(error) || read.isSecond || this.#closed) return read.reject(error);
      read.isSecond = true;
      // A restarted server knows none of them.
      this.#free.length = 0;
      this.#waiting.push(read);
    }
  }
}
