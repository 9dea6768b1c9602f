import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { amount, sample } from "#test/support/amount.ts";
import { refused } from "#test/support/commands/outcome.ts";
import { until } from "#test/support/descendants.ts";
import { atEnd, emptyFolder } from "#test/support/folder.ts";
import { freshly } from "#test/support/fresh.ts";
import { stopCleanly } from "#test/support/process.ts";
import { caughtUp, contentsOf, load, readiness, replicated, slugsIn } from "#test/support/replicas.ts";

test("a server starts and writes while its replica cannot be reached, and catches up", async () => {
  const folder = emptyFolder();
  // A directory cannot be created below a file.
  writeFileSync(join(folder, "volume"), "");
  const replica = replicated(join(folder, "volume", "replica"));
  const server = await replica.serve();
  const writing = load(server);
  await writing.more(amount(200, 500));
  const { status, replica: state } = await readiness(server);
  expect(status).toBe(200);
  expect(state.error).toBe("The replica cannot be written; see the server's log.");
  expect(state.lag_seconds).toBeGreaterThan(0);
  await until("the warning", () => server.stderr().includes("the replica cannot be written"));
  const { text } = await server.call("GET", "/metrics", { admin: server.admin });
  expect(Number(/^vodbox_replica_lag_seconds ([\d.]+)$/m.exec(text)?.[1])).toBeGreaterThan(0);
  rmSync(join(folder, "volume"));
  mkdirSync(join(folder, "volume"));
  await writing.stop();
  await caughtUp(server);
  await stopCleanly(server);
  const to = join(emptyFolder(), "data");
  await replica.restore({ to });
  expect(contentsOf(to)).toEqual(contentsOf(replica.dataDir));
  const found = slugsIn(to);
  expect([...writing.acknowledged.keys()].filter((slug) => !found.has(slug))).toEqual([]);
});

test("an S3 server that accepts connections and never answers blocks neither writes nor a stop", async () => {
  const sockets = new Set<Socket>();
  const silent = createServer((socket) => void sockets.add(socket.on("error", () => {})));
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  atEnd(() => {
    for (const socket of sockets) socket.destroy();
    silent.close();
  });
  const { port } = silent.address() as AddressInfo;
  const secret = "secret-of-the-replica-0123456789";
  const replica = replicated("s3://bucket/prefix", {
    VODBOX_REPLICA_S3_ENDPOINT: `http://127.0.0.1:${port}`,
    VODBOX_REPLICA_S3_ACCESS_KEY_ID: "key",
    VODBOX_REPLICA_S3_SECRET_ACCESS_KEY: secret,
  });
  const server = await replica.serve();
  const writing = load(server);
  await writing.more(amount(200, 500));
  expect(sockets.size).toBeGreaterThan(0);
  expect((await readiness(server)).status).toBe(200);
  await writing.stop();
  await stopCleanly(server);
  expect(server.stderr() + server.stdout()).not.toContain(secret);
  // The database alone is complete, as after any stop.
  const found = slugsIn(replica.dataDir);
  expect([...writing.acknowledged.keys()].filter((slug) => !found.has(slug))).toEqual([]);
});

/** A replica with several segments; their files in order, and the time after each acknowledged write. */
async function several() {
  const place = join(emptyFolder(), "replica");
  const replica = replicated(place);
  const server = await replica.serve();
  const { admin } = server;
  await caughtUp(server);
  const folders = () => readdirSync(join(place, "segments")).map((each) => join(place, "segments", each, "000000000"));
  const files = () => readdirSync(folders()[0] as string).sort();
  let damaged = 0;
  for (let count = 0; count < 6; count++) {
    const slug = `t-${count}`;
    const body = { name: slug, slug };
    expect((await freshly(server.base)("POST", "/api/v1/admin/tenants", { admin, body })).status).toBe(201);
    await caughtUp(server);
    // What the server writes by itself has segments too.
    if (count === 1) damaged = files().length;
  }
  server.child.kill("SIGKILL");
  await server.ended;
  return { place, replica, folder: folders()[0] as string, files, damaged };
}

/** `name`: of the segment to damage. */
type Damage = (folder: string, name: string, files: string[]) => void;
const DAMAGE: Record<string, Damage> = {
  "a missing segment": (folder, name) => rmSync(join(folder, name)),
  "a truncated segment": (folder, name) => truncateSync(join(folder, name), 100),
  "an empty segment": (folder, name) => truncateSync(join(folder, name), 0),
  "a segment with a changed byte": (folder, name) => {
    const path = join(folder, name);
    const bytes = readFileSync(path);
    bytes.writeUInt8(bytes.readUInt8(bytes.length - 20) ^ 1, bytes.length - 20);
    writeFileSync(path, bytes);
  },
  "a segment in the place of another": (folder, name, files) => {
    rmSync(join(folder, name));
    const other = files[1] as string;
    // Undamaged, with its own checksum, but it does not follow its predecessor.
    writeFileSync(
      join(folder, name.slice(0, name.lastIndexOf("-")) + other.slice(other.lastIndexOf("-"))),
      readFileSync(join(folder, other)),
    );
  },
};

test.each(sample(Object.keys(DAMAGE), 1))("%s is refused, and everything before it can be restored", async (name) => {
  const { place, replica, folder, files, damaged } = await several();
  const whole = files();
  expect(whole.length - damaged).toBeGreaterThan(3);
  (DAMAGE[name] as Damage)(folder, whole[damaged] as string, whole);
  const to = join(emptyFolder(), "data");
  const ended = await replica.admin("restore", "--from", place, "--data", to);
  expect([ended.code, ended.stdout]).toEqual([1, ""]);
  const sentence = ended.stderr;
  expect(sentence).toMatch(
    /^vodbox: Segment \d+ of the replica cannot be used: .*run the command again with --at \S+Z\.$/m,
  );
  expect(sentence).toContain(`Segment ${damaged + 1} `);
  expect(readdirSync(to).filter((entry) => !entry.startsWith("server."))).toEqual([]);
  const at = Date.parse(/--at (\S+)\./.exec(sentence)?.[1] as string);
  await replica.restore({ at, to });
  const found = slugsIn(to);
  expect(found.size).toBeGreaterThanOrEqual(2);
  expect(found.size).toBeLessThan(6);
  // Everything up to the damage, in order.
  expect([...found].sort()).toEqual(Array.from({ length: found.size }, (_, count) => `t-${count}`));
});

test("a damaged snapshot is replaced by an older one, which the result says", async () => {
  const place = join(emptyFolder(), "replica");
  const replica = replicated(place);
  const first = await replica.serve();
  const { admin } = first;
  await first.as({ admin }).createTenant({ name: "A", slug: "a" });
  await caughtUp(first);
  first.child.kill("SIGKILL");
  await first.ended;
  replica.lose();
  await replica.restore();
  const second = await replica.serve();
  await freshly(second.base)("POST", "/api/v1/admin/tenants", { admin, body: { name: "B", slug: "b" } });
  await caughtUp(second);
  second.child.kill("SIGKILL");
  await second.ended;
  const generation = readdirSync(join(place, "snapshots")).sort().at(-1) as string;
  const data = readdirSync(join(place, "snapshots", generation)).find((name) => name.endsWith(".zst")) as string;
  const path = join(place, "snapshots", generation, data);
  const bytes = readFileSync(path);
  const to = join(emptyFolder(), "data");
  for (const damage of [
    bytes.subarray(0, 50),
    Buffer.concat([bytes, Buffer.from("more")]),
    Buffer.alloc(bytes.length),
  ]) {
    writeFileSync(path, damage);
    const printed = await replica.restore({ to });
    expect(printed).toContain("NOTE  The snapshot of ");
    expect(printed).toContain("NOTE  The replica has nothing that can be restored between");
    expect([...slugsIn(to)]).toEqual(["a"]);
    rmSync(to, { recursive: true });
  }
  renameSync(join(place, "snapshots"), join(place, "elsewhere"));
  expect(await refused(["admin", "restore", "--from", place, "--data", to], 1)).toContain("contains no snapshot");
});

test("settings that cannot work are refused at the start", async () => {
  const data = join(emptyFolder(), "data");
  const serve = (env: Record<string, string>, code: 1 | 2 = 2) =>
    refused(["serve", "--data", data, "--port", "0"], code, { env });
  const remote = { VODBOX_DATABASE_URL: "http://127.0.0.1:1", VODBOX_REPLICA: "/tmp/replica" };
  expect(await serve(remote)).toContain("VODBOX_REPLICA needs a local database");
  expect(await serve({ VODBOX_REPLICA: join(data, "replica") })).toContain("is in the data directory");
  expect(await serve({ VODBOX_REPLICA: data })).toContain("is in the data directory");
  expect(await serve({ VODBOX_REPLICA: "ftp://host/replica" })).toContain("must be s3://BUCKET/PREFIX or a directory");
  expect(await serve({ VODBOX_REPLICA: "s3://bucket/../other" })).toContain(
    "must be s3://BUCKET/PREFIX or a directory",
  );
  expect(await serve({ VODBOX_REPLICA: "s3://bucket/replica" })).toContain("VODBOX_REPLICA_S3_ENDPOINT");
  expect(await serve({ VODBOX_REPLICA: "/tmp/replica", VODBOX_REPLICA_RETENTION_DAYS: "0" })).toContain("at least 1");
});

test("wrong use of the commands is explained", async () => {
  const data = join(emptyFolder(), "data");
  const command = (...args: string[]) => refused(["admin", ...args, "--data", data], 2);
  expect(await command("restore")).toContain("--from");
  expect(await command("restore", "a.tar", "--from", "/x")).toContain("either an archive or --from");
  expect(await command("restore", "a.tar", "--at", "2h")).toContain("--at requires --from");
  expect(await command("restore", "--from", "/x", "--at", "yesterday")).toContain("is not a time");
  expect(await command("restore", "--from", "/x", "--at", "2999-01-01T00:00:00Z")).toContain("in the future");
  expect(await refused(["admin", "replica", "status", "--data", data], 1)).toContain("There is no replica");
});
