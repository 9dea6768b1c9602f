import { request } from "node:http";
import { Readable } from "node:stream";
import { client } from "./client.ts";

/** Each call on its own connection, which the kernel assigns to any of the processes that share the port. */
export const freshly = (base: string) =>
  client(base, async (asked) => {
    const body = asked.body ? Buffer.from(await asked.arrayBuffer()) : undefined;
    return new Promise((resolve, reject) => {
      const headers = Object.fromEntries(asked.headers);
      const outgoing = request(asked.url, { method: asked.method, headers, agent: false }, (answer) => {
        const found = Object.entries(answer.headers).flatMap(([name, value]) =>
          [value ?? []].flat().map((one): [string, string] => [name, one]),
        );
        const isEmpty = [204, 304].includes(answer.statusCode as number);
        if (isEmpty) answer.resume();
        const content = isEmpty ? null : (Readable.toWeb(answer) as ReadableStream);
        resolve(new Response(content, { status: answer.statusCode as number, headers: found }));
      });
      outgoing.on("error", (error) => reject(new TypeError("fetch failed", { cause: error })));
      outgoing.end(body);
    });
  });
