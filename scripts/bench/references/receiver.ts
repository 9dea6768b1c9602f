import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** Accepts deliveries, reads them to their end and answers 200. */
const server = createServer((request, response) => {
  request.resume().on("end", () => response.end());
});
server.listen(0, "127.0.0.1", () => console.log(`ready on http://127.0.0.1:${(server.address() as AddressInfo).port}`));
process.on("SIGTERM", () => process.exit(0));
