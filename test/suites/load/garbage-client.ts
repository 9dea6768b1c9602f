import { Agent, get } from "node:http";
import { parentPort, workerData } from "node:worker_threads";

/** For each number that the thread receives, asks a server so often, on all of its connections, and sends the statuses. */
const { url, connections } = workerData as { url: string; connections: number };
const agent = new Agent({ keepAlive: true, maxSockets: connections });

const ask = () =>
  new Promise<number | undefined>((resolve, reject) => {
    get(url, { agent }, (response) => {
      response.resume().once("end", () => resolve(response.statusCode));
    }).once("error", reject);
  });

parentPort?.on("message", async (count: number) => {
  const statuses = new Set<number | undefined>();
  const askInTurn = async () => {
    for (let asked = 0; asked < count; asked += connections) statuses.add(await ask());
  };
  await Promise.all(Array.from({ length: connections }, askInTurn));
  parentPort?.postMessage([...statuses]);
});
