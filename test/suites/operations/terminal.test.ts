import { execFile } from "node:child_process";
import { truncateSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { Transform } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { json, succeeded } from "#test/support/commands/outcome.ts";
import { uploaded } from "#test/support/flow.ts";
import { atEnd, emptyFolder } from "#test/support/folder.ts";
import { fast, ffmpeg, picture } from "#test/support/media/sources.ts";
import { EXECUTABLE, lineOf, type RunningServer, startServer } from "#test/support/process.ts";

/** What a command writes to a terminal, stdout and stderr together. */
async function onTerminal(args: string[], env: Record<string, string> = {}): Promise<string> {
  const command = [EXECUTABLE, ...args].join(" ");
  const settings = { PATH: process.env.PATH, HOME: process.env.HOME, TERM: "xterm-256color", ...env };
  return (await promisify(execFile)("script", ["-qec", command, "/dev/null"], { env: settings })).stdout;
}

/** A relay that forwards about 4 MB a second from a client. */
async function slowRelay(): Promise<{ url: string; lead(server: RunningServer): Promise<void> }> {
  let port = 0;
  const sockets = new Set<Socket>();
  const relay = createServer((client) => {
    const server = connect(port, "127.0.0.1");
    const slow = new Transform({
      transform: (chunk, _, done) => void sleep(chunk.length / 4000).then(() => done(null, chunk)),
    });
    client.pipe(slow).pipe(server).pipe(client);
    for (const socket of [client, server]) socket.on("error", () => {});
    sockets.add(client).add(server);
  });
  await new Promise<void>((resolve) => relay.listen(0, "127.0.0.1", resolve));
  atEnd(() => {
    relay.close();
    for (const socket of sockets) socket.destroy();
  });
  return {
    url: `http://127.0.0.1:${(relay.address() as AddressInfo).port}`,
    async lead(server) {
      port = Number(new URL((await lineOf(server, /^listening on (\S+)$/m))[1] as string).port);
    },
  };
}

async function keyOf(server: RunningServer): Promise<string> {
  const { as, admin } = server;
  const tenant = await as({ admin }).createTenant({ name: "T", slug: "t" });
  const body = { tenant_id: tenant.body.id, scopes: ["assets:read", "assets:write", "playback:read"] };
  return (await as({ admin }).createApiKey(body)).body.token;
}

test("colors are for terminals, unless they are switched off", async () => {
  const dataDir = emptyFolder();
  await json(["admin", "tenant", "create", "--name", "A", "--slug", "a", "--data", dataDir]);
  const args = ["admin", "tenant", "list", "--data", dataDir];
  const listed = (more: string[], env?: Record<string, string>) => onTerminal([...args, ...more], env);
  const ESCAPE = "\u001b[";
  expect(await listed([])).toContain(`${ESCAPE}32mactive`);
  expect(await listed(["--no-color"])).not.toContain(ESCAPE);
  expect(await listed([], { NO_COLOR: "1" })).not.toContain(ESCAPE);
  expect((await succeeded(args)).stdout).not.toContain(ESCAPE);
});

test("records have units and relative times for people, and exact values in JSON", async () => {
  const server = await startServer(join(emptyFolder(), "data"));
  const { asset } = await uploaded(server, await keyOf(server), { bytes: "x".repeat(1_500_000) });
  const shown = ["admin", "asset", "show", String(asset.id), "--data", server.dataDir];
  const credentials = { env: { VODBOX_ADMIN_TOKEN: server.admin } };
  const { stdout } = await succeeded(shown, credentials);
  expect(stdout).toMatch(/^source_bytes +1\.5 MB$/m);
  expect(stdout).toMatch(/^created_at +\S+Z \((now|\d+ seconds? ago)\)$/m);
  expect(await json(shown, credentials)).toMatchObject({ source_bytes: 1_500_000, created_at: asset.created_at });
});

test("push shows speed and remaining time, and then the progress of the encode", async () => {
  const relay = await slowRelay();
  const folder = emptyFolder();
  const server = await startServer(join(folder, "data"), {
    args: ["--workers", "1"],
    env: { VODBOX_BASE_URL: relay.url },
  });
  await relay.lead(server);
  const env = { VODBOX_SERVER: relay.url, VODBOX_KEY: await keyOf(server), VODBOX_CACHE_DIR: join(folder, "cache") };
  const large = join(folder, "large.mp4");
  writeFileSync(large, "");
  truncateSync(large, 10_000_000);
  expect(await onTerminal(["push", large], env)).toMatch(/Uploading .* \d+ % \d+\.\d [kM]B\/s, \d+ s left/);
  const clip = join(folder, "clip.mp4");
  await ffmpeg(...picture("640x360", "30", 20), ...fast, clip);
  const written = await onTerminal(["push", clip, "--wait-ready"], env);
  expect(written).toMatch(/Encoding .* \d+ % /);
  expect(written).toContain("/watch/vid_");
});
