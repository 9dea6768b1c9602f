import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestProject } from "vitest/node";
import { startS3Server } from "./s3-server.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** Responds with the URL of this run's S3 server. */
    s3: string;
  }
}

/**
 * Each takes a quarter of a minute of both processors to start: one for all projects, and none when it is not needed.
 */
const shared = globalThis as { vodboxS3?: ReturnType<typeof startS3Server> };

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const door = createServer(async (_, response) => {
    try {
      shared.vodboxS3 ??= startS3Server();
      const { close, ...place } = await shared.vodboxS3;
      response.end(JSON.stringify(place));
    } catch (error) {
      response.writeHead(500).end(String(error));
    }
  });
  await new Promise<void>((resolve) => door.listen(0, "127.0.0.1", resolve));
  project.provide("s3", `http://127.0.0.1:${(door.address() as AddressInfo).port}/`);
  return async () => {
    door.close();
    const started = shared.vodboxS3;
    delete shared.vodboxS3;
    await (await started?.catch(() => null))?.close();
  };
}
