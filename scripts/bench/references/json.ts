import { createServer } from "node:http";

/** Raw node:http that answers JSON of a given size: an upper bound for any API. */
const body = JSON.stringify({ data: "x".repeat(Math.max(0, Number(process.argv[2]) - 11)) });
const server = createServer((_, response) => {
  response.writeHead(200, {
    "content-type": "application/json; charset=utf-8",
    "content-length": Buffer.byteLength(body),
  });
  response.end(body);
});
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  console.log(`ready on http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`);
});
process.on("SIGTERM", () => process.exit(0));
