import { type ChildProcessByStdio, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { EventEmitter, once } from "node:events";
import { createServer, type Server, type Socket } from "node:net";
import { constants } from "node:os";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";

const ID_BYTES = 16;
/** First bytes of a connection: the id of the run in hexadecimal, then the number of the stream. */
const HEAD_BYTES = 2 * ID_BYTES + 1;
/** A connection that has not sent them after this time is closed. */
const HEAD_MS = 5000;

/** The part of ChildProcess that `run` uses. Emits `error`; `exit`, and `close`, with exit status and signal. */
export type Spawned = EventEmitter & {
  readonly pid?: number | undefined;
  readonly spawnfile: string;
  readonly stdin: Writable | null;
  readonly stdout: Readable | null;
  readonly stderr: Readable | null;
  kill(signal: NodeJS.Signals): boolean;
};

class RemoteProcess extends EventEmitter implements Spawned {
  readonly pid: number;
  readonly spawnfile: string;
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  #hasExited = false;

  constructor(spawnfile: string, pid: number, [stdin, stdout, stderr]: [Socket, Socket, Socket]) {
    super();
    this.spawnfile = spawnfile;
    this.pid = pid;
    this.stdin = stdin;
    this.stdout = stdout;
    this.stderr = stderr;
    // An error without a listener would end this process.
    for (const stream of [stdin, stdout, stderr]) stream.on("error", () => {});
  }

  /** Returns false after the exit, when the pid may belong to another process. */
  kill(signal: NodeJS.Signals): boolean {
    if (this.#hasExited) return false;
    try {
      return process.kill(this.pid, signal);
    } catch {
      return false;
    }
  }

  /** Emits `close` when both outputs have been read to their end. */
  async exited(code: number | null, signal: NodeJS.Signals | null): Promise<void> {
    this.#hasExited = true;
    this.stdin.destroy();
    this.emit("exit", code, signal);
    await Promise.all([this.stdout, this.stderr].map((stream) => stream.closed || once(stream, "close")));
    this.emit("close", code, signal);
  }
}

type Spawner = ChildProcessByStdio<Writable, Readable, null>;

type Run = {
  file: string;
  pid: number | undefined;
  streams: [Socket?, Socket?, Socket?];
  process: RemoteProcess | undefined;
  /** Set if the process exited before all of its streams were accepted. */
  exit: [code: number | null, signal: NodeJS.Signals | null] | undefined;
  resolve(process: RemoteProcess): void;
  reject(error: Error): void;
};

/**
 * Starts programs through a small process (spawner.c). `spawn` of Node.js forks this process, which copies its page tables:
 * 6 ms for each 100 MB, during which the event loop is blocked.
 */
export class SpawnServer {
  readonly #child: Spawner;
  readonly #listener: Server;
  readonly #socketName: string;
  readonly #runs = new Map<string, Run>();

  /** `launcher` is the path of the program. Rejects when it cannot be started. */
  static async start(launcher: string): Promise<SpawnServer> {
    const listener = createServer({ allowHalfOpen: true });
    const socketName = `vodbox-spawn-${randomBytes(ID_BYTES).toString("hex")}`;
    listener.listen(`\0${socketName}`);
    await once(listener, "listening");
    const child = spawn(launcher, ["--spawn-server"], { cwd: "/", env: {}, stdio: ["pipe", "pipe", "inherit"] });
    try {
      await once(child, "spawn");
    } catch (error) {
      listener.close();
      throw error;
    }
    return new SpawnServer(child, listener, socketName);
  }

  private constructor(child: Spawner, listener: Server, socketName: string) {
    this.#child = child;
    this.#listener = listener;
    this.#socketName = socketName;
    listener.on("connection", (socket) => this.#accept(socket));
    createInterface({ input: child.stdout }).on("line", (line) => this.#receive(line));
    child.stdin.on("error", () => {});
    child.once("close", () => this.#lose());
    this.#keepAlive();
  }

  /** The small process ends with this one, and keeps it alive only while a program runs. */
  #keepAlive(): void {
    const method = this.#runs.size > 0 ? "ref" : "unref";
    const { stdin, stdout } = this.#child;
    for (const each of [this.#child, this.#listener, stdin as Socket, stdout as Socket]) each[method]();
  }

  /** Parent pid of the started programs. */
  get pid(): number {
    return this.#child.pid as number;
  }

  get isRunning(): boolean {
    return this.#listener.listening;
  }

  /** Resolves when the program has started; rejects if it cannot be started. `command` begins with an absolute path. */
  spawn(command: readonly string[], { cwd, env }: { cwd: string; env: Record<string, string> }): Promise<Spawned> {
    const id = randomBytes(ID_BYTES).toString("hex");
    const variables = Object.entries(env).map(([name, value]) => `${name}=${value}`);
    const strings = [id, this.#socketName, cwd, String(variables.length), ...variables, ...command];
    const payload = Buffer.from(strings.map((text) => `${text}\0`).join(""));
    const head = Buffer.alloc(4);
    head.writeUInt32LE(payload.length);
    const { promise, resolve, reject } = Promise.withResolvers<Spawned>();
    if (!this.isRunning || strings.some((text) => text.includes("\0"))) {
      reject(new Error(`${command[0]} could not be started.`));
      return promise;
    }
    const [file = ""] = command;
    this.#runs.set(id, {
      file,
      pid: undefined,
      streams: [],
      process: undefined,
      exit: undefined,
      resolve,
      reject,
    });
    this.#keepAlive();
    this.#child.stdin.write(Buffer.concat([head, payload]));
    return promise;
  }

  /** Ends the small process and the programs that it started. */
  stop(): void {
    this.#child.stdin.end();
  }

  /** Accepts a stream of a process. Any local user can connect, but only our process knows the id of a run. */
  #accept(socket: Socket): void {
    socket.on("error", () => {});
    const readHead = () => {
      const head = (socket.read(HEAD_BYTES) as Buffer | null)?.toString("latin1");
      if (head === undefined) return;
      socket.off("readable", readHead);
      socket.setTimeout(0);
      const run = this.#runs.get(head.slice(0, -1));
      const index = Number(head.slice(-1));
      if (!run || !(index in [0, 1, 2]) || run.streams[index]) return void socket.destroy();
      run.streams[index] = socket;
      // Only standard input is written to.
      if (index > 0) socket.end();
      this.#begin(head.slice(0, -1), run);
    };
    socket.setTimeout(HEAD_MS, () => socket.destroy());
    socket.on("readable", readHead);
    socket.once("end", () => socket.destroyed || socket.end());
  }

  #receive(line: string): void {
    const [kind, id = "", ...values] = line.split(" ");
    const run = this.#runs.get(id);
    if (!run) return;
    const [first = 0, second = 0] = values.map(Number);
    if (kind === "started") run.pid = first;
    else if (kind === "exited") run.exit = second === 0 ? [first, null] : [null, signalOf(second)];
    else {
      this.#forget(id);
      for (const stream of run.streams) stream?.destroy();
      return run.reject(new Error(`${run.file} could not be started (errno ${first}).`));
    }
    this.#begin(id, run);
  }

  /** Resolves the run when the process and its streams are known, and reports its exit. */
  #begin(id: string, run: Run): void {
    const [stdin, stdout, stderr] = run.streams;
    if (!run.process && run.pid !== undefined && stdin && stdout && stderr) {
      run.process = new RemoteProcess(run.file, run.pid, [stdin, stdout, stderr]);
      run.resolve(run.process);
    }
    const { process, exit } = run;
    if (!process || !exit) return;
    this.#forget(id);
    // The caller attaches its listeners first.
    setImmediate(() => void process.exited(...exit));
  }

  #forget(id: string): void {
    this.#runs.delete(id);
    this.#keepAlive();
  }

  /** The small process has exited; the kernel ends the programs that it started. */
  #lose(): void {
    this.#listener.close();
    for (const run of this.#runs.values()) {
      if (run.process) void run.process.exited(null, "SIGKILL");
      else run.reject(new Error(`${run.file} could not be started: the spawn server has exited.`));
    }
    this.#runs.clear();
  }
}

const signalOf = (number: number): NodeJS.Signals =>
  (Object.entries(constants.signals).find(([, value]) => value === number)?.[0] ?? "SIGKILL") as NodeJS.Signals;
