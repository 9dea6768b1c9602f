import { spawn } from "node:child_process";
import { Redis } from "ioredis";
import { freePort } from "#scripts/free-port.ts";
import { emptyFolder } from "./folder.ts";
import { lineOf, watched } from "./process.ts";

export type RedisServer = {
  url: string;
  /** One command, over a connection of its own. */
  command(name: string, ...args: string[]): Promise<unknown>;
  /** It keeps its connections and does not respond, until `resume`. */
  pause(): void;
  resume(): void;
  kill(): Promise<void>;
};

/** A real Redis on loopback, without persistence; it ends with the test. With `port`, in place of an earlier one. */
export async function redisServer({ port, password }: { port?: number; password?: string } = {}): Promise<RedisServer> {
  const chosen = port ?? (await freePort());
  const settings = { bind: "127.0.0.1", port: chosen, dir: emptyFolder(), save: "", requirepass: password ?? "" };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const started = watched(spawn("redis-server", args, { stdio: ["ignore", "pipe", "pipe"] }));
  await lineOf(started, /Ready to accept connections/);
  const { child } = started;
  const credentials = password ? `:${password}@` : "";
  const url = `redis://${credentials}127.0.0.1:${chosen}/0`;
  return {
    url,
    async command(name, ...rest) {
      const client = new Redis(url, { maxRetriesPerRequest: 1 });
      try {
        return await client.call(name, ...rest);
      } finally {
        client.disconnect();
      }
    },
    pause: () => void child.kill("SIGSTOP"),
    resume: () => void child.kill("SIGCONT"),
    async kill() {
      child.kill("SIGKILL");
      await started.ended;
    },
  };
}
