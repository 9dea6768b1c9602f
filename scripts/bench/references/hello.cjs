// A bare server in the same kind of executable: what starting Node itself costs.
const { createServer } = require("node:http");
const server = createServer((_, response) => response.end("hello"));
server.listen(0, "127.0.0.1", () => console.log(`ready on http://127.0.0.1:${server.address().port}`));
process.on("SIGTERM", () => process.exit(0));
