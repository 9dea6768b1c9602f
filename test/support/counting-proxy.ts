import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { atEnd } from "./folder.ts";

export type CountingProxy = {
  base: string;
  /** Bytes of sources that workers have received. */
  sourceBytes: () => number;
  /** Requests for sources. */
  sourceRequests: () => number;
};

/** A proxy in front of a server at `target`, which counts the bytes of sources. */
export async function countingProxy(target: string, { ignoresRanges = false } = {}): Promise<CountingProxy> {
  let bytes = 0;
  let requests = 0;
  const forward = (from: IncomingMessage, answer: ServerResponse) => {
    const isSource = from.method === "GET" && /\/sources\//.test(from.url ?? "");
    const { range, ...others } = from.headers;
    const headers = isSource && ignoresRanges ? others : from.headers;
    const onward = request(new URL(from.url ?? "", target), { method: from.method ?? "GET", headers }, (response) => {
      if (isSource) requests++;
      answer.writeHead(response.statusCode ?? 502, response.headers);
      response.on("data", (chunk: Buffer) => {
        if (isSource) bytes += chunk.length;
      });
      response.on("error", () => answer.destroy());
      response.pipe(answer);
    });
    onward.on("error", () => answer.destroy());
    answer.on("close", () => onward.destroy());
    from.pipe(onward);
  };
  const server = createServer(forward);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  atEnd(() => {
    server.closeAllConnections();
    server.close();
  });
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { base, sourceBytes: () => bytes, sourceRequests: () => requests };
}
