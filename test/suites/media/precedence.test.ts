import { readFileSync } from "node:fs";
import { expect, test, vi } from "vitest";
import { MediaError } from "#media/error.ts";
import { run } from "#media/ffmpeg.ts";
import type { Precedence } from "#media/precedence.ts";
import { descendantsOf, signalAll, until } from "#test/support/descendants.ts";
import { emptyFolder } from "#test/support/folder.ts";
import { binaries } from "#test/support/media/sources.ts";
import { nightly } from "#test/support/nightly.ts";

/** An endless encode into nothing, and the time that it has reached; `name` distinguishes it in the list of processes. */
function endless(name: string, precedence: Precedence) {
  const stop = new AbortController();
  const encode = { position: 0, stop: () => stop.abort(), ended: Promise.resolve<unknown>(null) };
  encode.ended = run(binaries.ffmpeg, {
    args: [
      ...["-v", "error", "-progress", "pipe:1", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25"],
      ...["-metadata", `title=${name}`, "-c:v", "libx264", "-f", "null", "-"],
    ],
    cwd: emptyFolder(),
    signal: stop.signal,
    precedence,
    timeLimitMs: 60_000,
    onPosition: (seconds) => {
      encode.position = seconds;
    },
  }).catch((error: unknown) => error);
  return encode;
}

/** Those of the sandbox, and the program itself. */
const processesOf = (name: string) =>
  descendantsOf(process.pid).filter(({ command }) => command.includes(`title=${name}`));
/** The state of a process (proc(5)): T when it is suspended. */
function stateOfProcess({ pid }: { pid: number }): string | undefined {
  const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  return stat[stat.lastIndexOf(")") + 2];
}
/** The state of the program itself. */
function stateOf(name: string): string | undefined {
  const program = processesOf(name).at(-1);
  return program && stateOfProcess(program);
}
const isSuspended = (name: string) => stateOf(name) === "T";
const isRunning = (name: string) => stateOf(name) !== undefined && stateOf(name) !== "T";

test("a run that no viewer waits for is suspended while others are urgent, and then continues", async () => {
  const background = endless("behind", "background");
  await until("it encodes", () => background.position > 1);
  const first = endless("first", "urgent");
  const second = endless("second", "urgent");
  await until("it is suspended", () => isSuspended("behind"));
  first.stop();
  expect(await first.ended).toMatchObject({ code: "aborted" });
  expect(isSuspended("behind")).toBe(true);
  const late = endless("late", "background");
  await until("one that began meanwhile is suspended", () => isSuspended("late"));
  expect(isRunning("second")).toBe(true);
  second.stop();
  await second.ended;
  const { position } = background;
  await until("both encode", () => background.position > position && late.position > 1);
  for (const one of [background, late]) one.stop();
  expect(await Promise.all([background.ended, late.ended])).toEqual([expect.any(MediaError), expect.any(MediaError)]);
});

test("a run continues of which a process of the sandbox was suspended, just before it started the next one", async () => {
  const background = endless("starting", "background");
  await until("it encodes", () => background.position > 0);
  const urgent = endless("urgent meanwhile", "urgent");
  await until("it is suspended", () => isSuspended("starting"));
  const all = processesOf("starting");
  expect(all.length).toBeGreaterThan(1);
  signalAll(all, "SIGSTOP");
  urgent.stop();
  await urgent.ended;
  await until("none of them is suspended", () => !all.some((one) => stateOfProcess(one) === "T"));
  background.stop();
  expect(await background.ended).toMatchObject({ code: "aborted" });
});

test("a requested run is suspended for the one that was requested after it, and then continues", async () => {
  const sound = endless("sound", "urgent");
  const left = endless("left", "latest");
  await until("both encode", () => left.position > 0 && sound.position > 0);
  const wanted = endless("wanted", "latest");
  await until("the first one is suspended", () => isSuspended("left"));
  expect([isRunning("wanted"), isRunning("sound")]).toEqual([true, true]);
  sound.stop();
  await sound.ended;
  expect(isSuspended("left")).toBe(true);
  wanted.stop();
  await wanted.ended;
  const { position } = left;
  await until("it continues", () => left.position > position);
  left.stop();
  await left.ended;
});

test("a suspended run ends as soon as it is aborted", async () => {
  const urgent = endless("urgent", "urgent");
  const background = endless("aborted", "background");
  await until("it is suspended", () => isSuspended("aborted"));
  // It would be killed after two seconds by a timer, which does not run here.
  vi.useFakeTimers({ toFake: ["setTimeout"] });
  try {
    background.stop();
    expect(await background.ended).toMatchObject({ code: "aborted" });
  } finally {
    vi.useRealTimers();
  }
  urgent.stop();
  await urgent.ended;
});

nightly("urgent runs without an end take at most half of the time", async () => {
  const background = endless("starved", "background");
  await until("it encodes", () => background.position > 1);
  const urgent = endless("always", "urgent");
  await until("it is suspended", () => isSuspended("starved"));
  const { position } = background;
  await until("it runs although the other does not end", () => background.position > position, 60_000);
  expect(isRunning("always")).toBe(true);
  for (const one of [background, urgent]) one.stop();
  await Promise.all([background.ended, urgent.ended]);
});
