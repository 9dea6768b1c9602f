import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Random } from "#test/support/crash/random.ts";

/** Receivers in another process, so that their work does not affect the sender. */
const [, , argument, seed] = process.argv;
const random = new Random(Number(seed));
const flood = Buffer.alloc(10_000_000, "x");
const BEHAVIOURS: Record<string, (response: ServerResponse) => void> = {
  healthy: (response) => void response.end("thanks"),
  "fails half the time": (response) => void response.writeHead(random.chance(0.5) ? 500 : 200).end(),
  hangs: () => {},
  drips(response) {
    response.writeHead(200);
    const timer = setInterval(() => response.write("."), 200);
    response.on("close", () => clearInterval(timer));
  },
  "closes early": (response) => void response.destroy(),
  "answers 10 MB": (response) => void response.end(flood),
};

/** For each receiver, in order: the events, and their delay. */
export type Report = { ids: string[]; waits: number[] }[];

const kinds = JSON.parse(argument as string) as string[];
const report: Report = kinds.map(() => ({ ids: [], waits: [] }));
const urls = await Promise.all(
  kinds.map(async (kind, index) => {
    const server = createServer(async (request, response) => {
      const at = Date.now();
      let body = "";
      for await (const chunk of request.setEncoding("utf8")) body += chunk;
      const { id, created_at } = JSON.parse(body) as { id: string; created_at: string };
      report[index]?.ids.push(id);
      report[index]?.waits.push(at - Date.parse(created_at));
      BEHAVIOURS[kind]?.(response);
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  }),
);
process.on("message", () => process.send?.(report));
process.on("disconnect", () => process.exit(0));
process.send?.(urls);
