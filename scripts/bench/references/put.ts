import { createWriteStream } from "node:fs";
import { open } from "node:fs/promises";
import { createServer } from "node:http";
import { pipeline } from "node:stream/promises";

/**
 * Raw node:http that pipes a body into a file: the obvious first implementation. It does not wait for the disk, except
 * for `/synced`, where it syncs as ours does.
 */
const path = process.argv[2] as string;
const server = createServer(async (request, response) => {
  await pipeline(request, createWriteStream(path));
  if (request.url === "/synced") {
    const file = await open(path);
    await file.sync();
    await file.close();
  }
  response.writeHead(200, { "content-length": 0 });
  response.end();
});
server.requestTimeout = 0;
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  console.log(`ready on http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`);
});
process.on("SIGTERM", () => process.exit(0));
