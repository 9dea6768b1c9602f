import { expect, test } from "vitest";
import { rows } from "#test/support/amount.ts";
import { until } from "#test/support/descendants.ts";
import { callback, next, uploaded } from "#test/support/flow.ts";
import { listAt, liveServer, newChannel, publish, untilListed, untilLive } from "#test/support/live.ts";
import { steppedClock } from "#test/support/stepped-clock.ts";

/** The wall clock of a server is set while it runs. */

const SECOND = 1000;
const HOUR = 3600 * SECOND;
const DAY = 24 * HOUR;

type Step = { name: string; from?: number; to: number; isStopped?: boolean; processes?: number };
const SINCE_1970 = DAY - Date.now();

const STEPS: Step[] = [
  { name: "+8 h", to: 8 * HOUR },
  { name: "-8 h", to: -8 * HOUR },
  { name: "suspended, +8 h", to: 8 * HOUR, isStopped: true },
  { name: "from 1970 to now", from: SINCE_1970, to: 0 },
  { name: "+1 s", to: SECOND },
  { name: "+30 days", to: 30 * DAY },
  { name: "+10 years", to: 3650 * DAY },
  { name: "-1 s", to: -SECOND },
  { name: "-30 days", to: -30 * DAY },
  { name: "suspended", to: 0, isStopped: true },
  { name: "suspended, -8 h", to: -8 * HOUR, isStopped: true },
  { name: "+8 h, two processes", to: 8 * HOUR, processes: 2 },
  { name: "-8 h, two processes", to: -8 * HOUR, processes: 2 },
];

const LEASE_SECONDS = 10;

test.each(rows(STEPS, 1))("$name: requests, leases, scheduled tasks and a live stream continue", async (step) => {
  const clock = steppedClock(step.from);
  const env: Record<string, string> = {
    ...clock.env,
    VODBOX_LEASE_SECONDS: String(LEASE_SECONDS),
    VODBOX_LOG_LEVEL: "info",
  };
  if (step.processes) env.VODBOX_PROCESSES = String(step.processes);
  const server = await liveServer({ env });
  const channel = await newChannel(server);
  const publisher = publish(server, channel, 300);
  const [video] = await untilLive(server);
  // One worker continues, the other one has died.
  await uploaded(server, channel.key);
  await uploaded(server, channel.key);
  const { body: alive } = await next(server, undefined, { worker_id: "alive" });
  const { body: dead } = await next(server, undefined, { worker_id: "dead" });
  expect([alive.job?.id, dead.job?.id]).toEqual([expect.any(Number), expect.any(Number)]);

  let isOver = false;
  const beats: number[] = [];
  const beating = (async () => {
    for (let progress = 1; !isOver; progress++) {
      beats.push((await callback(server, alive, "heartbeat", { progress: Math.min(90, progress) })).status);
      await new Promise((resolve) => setTimeout(resolve, (LEASE_SECONDS * SECOND) / 20));
    }
  })();
  let longestMs = 0;
  let suspensions = 0;
  const asking = (async () => {
    while (!isOver) {
      const since = performance.now();
      const suspended = suspensions;
      expect((await server.as().getHealth()).status).toBe(200);
      if (suspensions === suspended) longestMs = Math.max(longestMs, performance.now() - since);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  })();
  const { pid } = server.child as { pid: number };
  const before = server.stderr().length;
  if (step.isStopped) {
    suspensions++;
    process.kill(pid, "SIGSTOP");
    clock.setTo(step.to);
    // Real time: the process is suspended for longer than its leases.
    await new Promise((resolve) => setTimeout(resolve, (LEASE_SECONDS + 2) * SECOND));
    process.kill(pid, "SIGCONT");
    expect((await server.as().getHealth()).status).toBe(200);
    suspensions++;
  } else clock.setTo(step.to);

  // The lease of the dead worker ends, and neither sooner nor in hours.
  const again = await until("the job of the dead worker is queued again", async () => {
    const { status, body } = await next(server, undefined, { worker_id: "other" });
    return status === 200 ? body : null;
  });
  expect(again.job.id).toBe(dead.job.id);
  const { segments } = await listAt(server, video);
  const { segments: later } = await untilListed(server, video, segments.filter(({ complete }) => complete).length + 2);
  const times = later.flatMap(({ date }) => (date === null ? [] : [date]));
  expect(times.length).toBeGreaterThan(2);
  expect(times).toEqual(times.toSorted((one, two) => one - two));
  isOver = true;
  await Promise.all([beating, asking]);
  expect(new Set(beats)).toEqual(new Set([200]));
  expect(publisher.child.exitCode).toBeNull();
  // Real time: no request waits for more than a second, and three on a machine that is as slow as `until` allows.
  expect(longestMs).toBeLessThan(3 * SECOND);

  const lines = server
    .stderr()
    .slice(before)
    .split("\n")
    .filter((line) => line !== "");
  const tasks = lines.flatMap((line) => /"task":"([^"]+)"/.exec(line)?.[1] ?? []);
  expect(tasks).toEqual([...new Set(tasks)]);
  expect(
    lines.filter(
      (line) => /"level":"(warn|error|fatal)"/.test(line) && !/clock was set|missed their time|attempt/.test(line),
    ),
  ).toEqual([]);
  expect(lines.length).toBeLessThan(30);
});
