import { join } from "node:path";
import { expect, test } from "vitest";
import { descendantsOf } from "#test/support/descendants.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { stopCleanly } from "#test/support/process.ts";
import { caughtUp, contentsOf, generationsOf, load, readiness, replicated, slugsIn } from "#test/support/replicas.ts";

const TWO = ["--processes", "2"];
const LOST_MS = 1500;

test("two processes have one replica, which loses nothing at a stop and at most 1.5 s in a crash", async () => {
  const replica = replicated(join(emptyFolder(), "replica"));
  const first = await replica.serve(TWO);
  const writing = load(first);
  await writing.more(500);
  await writing.stop();
  await stopCleanly(first);
  const to = join(emptyFolder(), "data");
  await replica.restore({ to });
  expect(contentsOf(to)).toEqual(contentsOf(replica.dataDir));

  const second = await replica.serve(TWO);
  const more = load(second);
  await more.more(800);
  expect((await readiness(second)).replica).toMatchObject({ error: null });
  const lostAt = Date.now();
  const processes = descendantsOf(second.child.pid as number);
  for (const { pid } of processes) process.kill(pid, "SIGKILL");
  second.child.kill("SIGKILL");
  replica.lose();
  await Promise.all([second.ended, more.stop()]);
  expect([...new Set([...generationsOf(second).begun, ...generationsOf(second).continued])]).toEqual(
    generationsOf(first).begun,
  );
  await replica.restore();
  const found = slugsIn(replica.dataDir);
  expect([...writing.acknowledged.keys()].filter((slug) => !found.has(slug))).toEqual([]);
  const lost = [...more.acknowledged].filter(([slug]) => !found.has(slug));
  expect(lost.filter(([, at]) => at < lostAt - LOST_MS)).toEqual([]);
});

test("when the process that replicates is killed, another one continues", async () => {
  const replica = replicated(join(emptyFolder(), "replica"));
  const server = await replica.serve(TWO);
  const writing = load(server);
  await writing.more(200);
  const begun = /"process":(\d).*begins a new generation/.exec(server.stderr())?.[1];
  expect(begun).toBe("0");
  const [first] = descendantsOf(server.child.pid as number).toSorted((a, b) => a.pid - b.pid);
  process.kill(first?.pid as number, "SIGKILL");
  await writing.more(200);
  await writing.stop();
  await caughtUp(server);
  expect(generationsOf(server).begun).toHaveLength(1);
  expect(generationsOf(server).continued).toEqual(generationsOf(server).begun);
  await stopCleanly(server);
  const to = join(emptyFolder(), "data");
  await replica.restore({ to });
  expect(contentsOf(to)).toEqual(contentsOf(replica.dataDir));
});
