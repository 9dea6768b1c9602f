import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { rows } from "#test/support/amount.ts";
import { refused } from "#test/support/commands/outcome.ts";
import { descendantsOf, until, untilGone } from "#test/support/descendants.ts";
import { emptyFolder, newFolder, removeFolder } from "#test/support/folder.ts";
import { type Notice, notifySocket, openNotifySocket } from "#test/support/notify-socket.ts";
import { startServer, stopCleanly } from "#test/support/process.ts";
import { startSqld } from "#test/support/sqld.ts";
import { smallDisk } from "#test/support/storage/small-disk.ts";

const WATCHDOG_MS = 2000;
const watchdog = { WATCHDOG_USEC: String(WATCHDOG_MS * 1000) };
const beats = (notices: Notice[]) => notices.filter(({ state }) => state.WATCHDOG === "1").length;
const ready = (notices: Notice[]) => notices.find(({ state }) => state.READY === "1");
const moreBeats = (notices: Notice[], count = 2) => {
  const before = beats(notices);
  return until(`${count} beats`, () => beats(notices) >= before + count);
};
/** Reports of another server, which nothing disturbs: the clock of what must not happen, however busy this machine is. */
let healthy: Notice[];
/** Longer than a manager would wait. */
const longerThanWatchdog = () => moreBeats(healthy, 4);
const noBeats = async (notices: Notice[]) => {
  // One may be in progress.
  await moreBeats(healthy, 1);
  const before = beats(notices);
  await longerThanWatchdog();
  expect(beats(notices)).toBe(before);
};

beforeAll(async () => {
  const folder = newFolder();
  const socket = join(folder, "notify");
  const manager = await openNotifySocket(socket);
  healthy = manager.notices;
  const server = await startServer(join(folder, "data"), { env: { NOTIFY_SOCKET: socket, ...watchdog } });
  return async () => {
    for (const { child, ended } of [server, manager.program]) {
      child.kill("SIGKILL");
      await ended;
    }
    removeFolder(folder);
  };
});

test.each(rows([2, 1], 1))(
  "the service manager is notified when the server is ready, alive and stopping, and only by the server (processes: %i)",
  async (processes) => {
    const socket = join(emptyFolder(), "notify");
    const notices = await notifySocket(socket);
    const env = { NOTIFY_SOCKET: socket, ...watchdog };
    const server = await startServer(emptyFolder(), {
      env,
      args: ["--workers", "1", "--processes", String(processes)],
    });
    const first = await until("READY=1", () => ready(notices));
    expect((await server.as().getReadiness()).status).toBe(200);
    expect(first.state).toEqual({
      READY: "1",
      MAINPID: String(server.child.pid),
      STATUS: `Serving ${server.base}${processes > 1 ? ` with ${processes} processes` : ""}`,
    });
    const worker = await until("a worker", () =>
      descendantsOf(server.child.pid as number).find(({ command }) => command.includes(" worker ")),
    );
    const environment = readFileSync(`/proc/${worker.pid}/environ`, "utf8");
    expect(environment).toContain("VODBOX_WORKER_TOKEN=");
    expect(environment).not.toMatch(/NOTIFY_SOCKET|WATCHDOG/);

    await moreBeats(notices, 4);
    const apart = notices.filter(({ state }) => state.WATCHDOG).map(({ at }) => at);
    const gaps = apart.slice(1).map((at, i) => at - (apart[i] as number));
    // A busy machine delays some of them.
    expect(gaps.toSorted((a, b) => a - b)[Math.floor(gaps.length / 2)]).toBeLessThan(WATCHDOG_MS);

    // An event loop that is blocked.
    server.child.kill("SIGSTOP");
    await noBeats(notices);
    server.child.kill("SIGCONT");
    await moreBeats(notices);

    await stopCleanly(server);
    const stopping = notices.findIndex(({ state }) => state.STOPPING === "1");
    expect(stopping).toBe(notices.length - 1);
    expect(notices[stopping]?.state).toMatchObject({ MAINPID: String(server.child.pid) });
    expect(server.stderr()).not.toContain("service manager");
  },
);

test("READY=1 waits for /readyz; a watchdog of another process is ignored; the socket may be abstract", async (context) => {
  const disk = smallDisk(context, 24);
  const megabyte = 2 ** 20;
  writeFileSync(join(disk.path, "filler"), Buffer.alloc(14 * megabyte));
  mkdirSync(join(disk.path, "data"));
  const address = `@vodbox-test-${randomUUID()}`;
  const notices = await notifySocket(address);
  const server = await startServer(join(disk.path, "data"), {
    env: {
      NOTIFY_SOCKET: address,
      ...watchdog,
      WATCHDOG_PID: "1",
      VODBOX_MIN_FREE_BYTES: String(12 * megabyte),
      VODBOX_LOG_LEVEL: "fatal",
    },
  });
  await until("what it waits for", () => notices.some(({ state }) => state.STATUS?.includes("Waiting")));
  expect((await server.as().getReadiness()).status).toBe(503);
  expect(ready(notices)).toBeUndefined();
  rmSync(join(disk.path, "filler"));
  await until("READY=1", () => ready(notices));
  expect((await server.as().getReadiness()).status).toBe(200);
  await noBeats(notices);
  expect(beats(notices)).toBe(0);
});

test("a database that hangs stops the watchdog's reports; an unavailable remote one does not, because a restart would not help", async () => {
  const database = await startSqld(emptyFolder());
  const socket = join(emptyFolder(), "notify");
  const notices = await notifySocket(socket);
  await startServer(emptyFolder(), {
    env: { NOTIFY_SOCKET: socket, ...watchdog, VODBOX_DATABASE_URL: database.url, VODBOX_LOG_LEVEL: "fatal" },
  });
  await moreBeats(notices);
  process.kill(database.pid, "SIGSTOP");
  await noBeats(notices);
  process.kill(database.pid, "SIGCONT");
  await moreBeats(notices);
  await database.stop();
  await moreBeats(notices, 4);
});

test("a failing start is not delayed by notifications, and a killed server leaves no process", async () => {
  const socket = join(emptyFolder(), "notify");
  const notices = await notifySocket(socket);
  const server = await startServer(emptyFolder(), { env: { NOTIFY_SOCKET: socket } });
  const args = ["serve", "--port", new URL(server.base).port, "--data", emptyFolder()];
  expect(await refused(args, 1, { env: { NOTIFY_SOCKET: socket } })).toContain("is in use");
  await until("READY=1", () => ready(notices));
  const below = descendantsOf(server.child.pid as number);
  expect(below.map(({ command }) => command)).toEqual([expect.stringContaining("systemd-notify")]);
  server.child.kill("SIGKILL");
  await untilGone(below);
});

test("without systemd-notify the server runs normally, and reports once what is missing", async () => {
  const server = await startServer(emptyFolder(), {
    env: { NOTIFY_SOCKET: "/nowhere/notify", ...watchdog, PATH: emptyFolder() },
  });
  await until("a warning", () => server.stderr().includes("systemd-notify"));
  await longerThanWatchdog();
  expect(server.stderr().match(/cannot be notified/g)).toHaveLength(1);
  expect((await server.as().getReadiness()).status).toBe(200);
});
