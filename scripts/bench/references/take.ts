import { createServer } from "node:http";

/** Raw node:http that reads a body to its end, discards it, and answers a few bytes of JSON. */
const server = createServer((request, response) => {
  request.resume().on("end", () => {
    response.writeHead(202, { "content-type": "application/json; charset=utf-8", "content-length": 14 });
    response.end('{"accepted":1}');
  });
});
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  console.log(`ready on http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`);
});
process.on("SIGTERM", () => process.exit(0));
