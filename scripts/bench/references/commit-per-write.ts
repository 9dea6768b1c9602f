import { createServer } from "node:http";
import { join } from "node:path";
import Sqlite from "libsql";

/** Raw node:http that commits each write separately at synchronous=FULL: the plain way to a durable response. */
const database = new Sqlite(join(process.argv[2] as string, "reference.db"));
database.exec("PRAGMA journal_mode=WAL");
database.exec("PRAGMA synchronous=FULL");
database.exec("CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY, name TEXT, updated_at INTEGER)");
database.exec("INSERT OR IGNORE INTO rows VALUES (1, '', 0)");
const update = database.prepare("UPDATE rows SET name = ?, updated_at = ? WHERE id = 1");
const server = createServer((request, response) => {
  let text = "";
  request.on("data", (chunk) => {
    text += chunk;
  });
  request.on("end", () => {
    update.run([JSON.parse(text).name, Date.now()]);
    response.writeHead(200, { "content-type": "application/json" });
    response.end('{"ok":true}');
  });
});
server.listen(0, "127.0.0.1", () => {
  const address = server.address();
  console.log(`ready on http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`);
});
process.on("SIGTERM", () => process.exit(0));
