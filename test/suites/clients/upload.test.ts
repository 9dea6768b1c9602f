import { type ChildProcess, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { createReadStream, writeFileSync } from "node:fs";
import { appendFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { amount, rows } from "#test/support/amount.ts";
import { installedClients } from "#test/support/clients.ts";
import { emptyFolder, newFolder, removeFolder } from "#test/support/folder.ts";
import { type RunningServer, startServer, watched } from "#test/support/process.ts";
import { startRelay } from "#test/support/relay.ts";

const MIB = 2 ** 20;
/** A user's program: uploads a file and prints its progress, line by line, then the result and its largest memory. */
const PROGRAM = `import { createReadStream, statSync } from "node:fs";
import { fileStorage, Vodbox } from "@vodbox/client";
const [path, kind, storage] = process.argv.slice(2);
const file = kind === "stream" ? { stream: createReadStream(path), size: statSync(path).size, filename: "s.mp4" } : path;
const result = await new Vodbox().upload(file, {
  title: "From a program",
  storage: storage ? fileStorage(storage) : null,
  resumeKey: kind === "stream" ? path : undefined,
  onProgress: (progress) => console.log(JSON.stringify(progress)),
});
console.log(JSON.stringify({ ...result, memory: process.resourceUsage().maxRSS * 1024 }));
`;

let folder: string;
let data: string;
let server: RunningServer;
let key: string;
beforeAll(async () => {
  data = newFolder();
  [folder, server] = await Promise.all([installedClients("client"), startServer(data)]);
  writeFileSync(join(folder, "upload.js"), PROGRAM);
  const { admin, as } = server;
  const tenant = await as({ admin }).createTenant({ name: "Client", slug: "client" });
  const body = { tenant_id: tenant.body.id, scopes: ["assets:read", "assets:write"] };
  key = (await as({ admin }).createApiKey(body)).body.token;
});
afterAll(async () => {
  server?.child.kill("SIGTERM");
  await server?.ended;
  for (const each of [folder, data]) removeFolder(each);
});

type Line = { bytesSent: number; bytesTotal: number; bytesPerSecond: number; secondsRemaining: number | null };
type Result = { upload_id: number; asset_id: number; memory: number };

function start(base: string, ...args: string[]) {
  const env = { ...process.env, VODBOX_SERVER: base, VODBOX_KEY: key };
  const child: ChildProcess = spawn(process.execPath, ["upload.js", ...args], { cwd: folder, env });
  const program = watched(child);
  const lines = () =>
    program
      .stdout()
      .split("\n")
      .filter((line) => line.endsWith("}"))
      .map((line) => JSON.parse(line));
  return {
    child,
    ended: program.ended,
    progress: () => lines().filter((line) => "bytesSent" in line) as Line[],
    async result() {
      const ended = await program.ended;
      expect(ended.code, ended.stderr).toBe(0);
      return lines().at(-1) as Result;
    },
  };
}

async function newFile(bytes: number): Promise<string> {
  const path = join(emptyFolder(), "film.mp4");
  const piece = randomBytes(MIB);
  for (let left = bytes; left > 0; left -= MIB) {
    piece.writeUInt32BE(left % 2 ** 32);
    await appendFile(path, piece.subarray(0, left));
  }
  return path;
}

async function sumOf(bytes: AsyncIterable<Uint8Array>): Promise<string> {
  const hash = createHash("sha256");
  for await (const each of bytes) hash.update(each);
  return hash.digest("hex");
}

async function expectStored({ upload_id, asset_id }: Result, path: string): Promise<void> {
  const upload = await server.as(key).getUpload(upload_id);
  expect(upload.body).toMatchObject({ status: "completed", asset_id });
  const { body } = await server.as(key).getDownload(asset_id);
  const stored = (await fetch(body.url)).body as AsyncIterable<Uint8Array>;
  expect(await sumOf(stored)).toBe(await sumOf(createReadStream(path)));
}

async function relayed() {
  const relay = await startRelay();
  relay.lead(Number(new URL(server.base).port));
  return relay;
}

test("a file is uploaded with its progress, speed and remaining time", async () => {
  const path = await newFile(20 * MIB);
  const program = start(server.base, path, "path");
  const result = await program.result();
  await expectStored(result, path);
  const asset = await server.as(key).getAsset(result.asset_id);
  expect(asset.body).toMatchObject({ title: "From a program", original_filename: "film.mp4" });
  const progress = program.progress();
  expect(progress[0]).toMatchObject({ bytesSent: 0, bytesTotal: 20 * MIB, bytesPerSecond: 0, secondsRemaining: null });
  expect(progress.at(-1)).toMatchObject({ bytesSent: 20 * MIB, secondsRemaining: 0 });
  expect(progress.at(-1)?.bytesPerSecond).toBeGreaterThan(0);
  expect(progress.map(({ bytesSent }) => bytesSent)).toEqual(
    progress.map(({ bytesSent }) => bytesSent).sort((a, b) => a - b),
  );
});

test.each(["path", "stream"])(
  "an upload of a %s that was killed is resumed, and sends hardly anything twice",
  async (kind) => {
    const bytes = 64 * MIB;
    const path = await newFile(bytes);
    const storage = emptyFolder();
    const relay = await relayed();
    const paused = relay.holdAfter(40 * MIB);
    const first = start(relay.base, path, kind, storage);
    await paused;
    first.child.kill("SIGKILL");
    await first.ended;
    const before = relay.sent();
    relay.reset();
    const second = start(relay.base, path, kind, storage);
    const result = await second.result();
    await expectStored(result, path);
    expect(second.progress()[0]?.bytesSent).toBeGreaterThan(20 * MIB);
    const twice = before + relay.sent() - bytes;
    // What was in buffers between the two, and headers.
    expect(twice).toBeLessThan(2 * MIB);
    // It is complete, so the same file is another upload.
    expect(await readdir(storage)).toEqual([]);
    expect((await start(server.base, path, kind, storage).result()).upload_id).not.toBe(result.upload_id);
  },
);

test("connections that break are continued in the same call", async () => {
  const path = await newFile(12 * MIB);
  const relay = await relayed();
  relay.cutAfter(1.5 * MIB, 3);
  const program = start(relay.base, path, "path");
  await expectStored(await program.result(), path);
  expect(relay.cuts()).toBe(3);
  expect(relay.sent()).toBeLessThan(20 * MIB);
});

test("an upload that was aborted at the server begins again, and a refusal is reported", async () => {
  const path = await newFile(24 * MIB);
  const storage = emptyFolder();
  const relay = await relayed();
  const paused = relay.holdAfter(10 * MIB);
  const first = start(relay.base, path, "path", storage);
  await paused;
  first.child.kill("SIGKILL");
  await first.ended;
  const [pending] = (await server.as(key).listUploads({ status: "pending" })).body;
  const aborted = await server.call("DELETE", `/api/v1/uploads/tus/${pending.id}`, {
    key,
    headers: { "tus-resumable": "1.0.0" },
  });
  expect(aborted.status).toBe(204);
  const result = await start(server.base, path, "path", storage).result();
  expect(result.upload_id).not.toBe(pending.id);
  await expectStored(result, path);
  const empty = join(emptyFolder(), "empty.mp4");
  writeFileSync(empty, "");
  expect((await start(server.base, empty, "path").ended).stderr).toContain("An empty file is not a video");
});

test.each(rows(["path", "stream"], 1))("the memory for a %s does not grow with the file", async (kind) => {
  const used: number[] = [];
  for (const size of [32, amount(224, 512)])
    used.push((await start(server.base, await newFile(size * MIB), kind).result()).memory);
  expect((used[1] as number) - (used[0] as number)).toBeLessThan(100 * MIB);
});
