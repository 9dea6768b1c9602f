import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, expect, test } from "vitest";
import { amount } from "#test/support/amount.ts";
import { type TestApp, testApp } from "#test/support/app.ts";
import { expectError } from "#test/support/error.ts";
import { uploaded } from "#test/support/flow.ts";
import { subtitled } from "#test/support/subtitles.ts";

/** The server has no option for its listen address: here it is loopback, with a free port. */
const SERVER = `
import sys
import tornado.tcpserver as tcp
bind = tcp.bind_sockets
def on_loopback(port, address=None, **others):
    sockets = bind(0, "127.0.0.1", **others)
    print(sockets[0].getsockname()[1], flush=True)
    return sockets
tcp.bind_sockets = on_loopback
sys.argv = ["apertium-apy", "/usr/share/apertium/modes"]
from apertium_apy.apy import main
main()
`;

let server: ChildProcess;
let app: TestApp;
beforeAll(async () => {
  // It refuses to start without a UTF-8 locale, and a machine that only runs tests may have none.
  const env = { ...process.env, LC_ALL: "C.UTF-8" };
  server = spawn("/usr/bin/python3", ["-c", SERVER], { stdio: ["ignore", "pipe", "ignore"], env });
  const lines = createInterface({ input: server.stdout as NodeJS.ReadableStream });
  const [port] = await Promise.race([
    once(lines, "line"),
    once(server, "exit").then(([code]) => {
      throw new Error(`apertium-apy ended with ${code}; scripts/test.sh installs it`);
    }),
  ]);
  app = await testApp({ translate: "apertium", translate_url: `http://127.0.0.1:${port}` });
});
afterAll(async () => {
  await app?.close();
  if (server.exitCode !== null) return;
  server.kill("SIGKILL");
  await once(server, "exit");
});

const FILE = `WEBVTT

1
00:00:01.000 --> 00:00:03.000 line:0
<v Ann>The house is red
and the dog is black.</v>

2
00:00:03.000 --> 00:00:05.000
- I read <i>the good book</i> &amp; I sing.
- I do not have a dog.

3
00:00:05.000 --> 00:00:06.000
[♪ ♪ ♪]
`;

test("Apertium translates a track, and leaves cues without words unchanged", async () => {
  const key = await app.key((await app.tenant()).id);
  const { asset } = await uploaded(app, key);
  const track = await subtitled(app, key, asset.id, { language: "en-GB" }, FILE);
  const translate = (target_language: string) => app.as(key).translateSubtitle(asset.id, track.id, { target_language });
  const made = await translate("es");
  expect([made.status, made.body.language, made.body.label]).toEqual([201, "es", "English (auto translated)"]);
  const { content } = (await app.as(key).getSubtitle(asset.id, made.body.id)).body;
  expect(content).toBe(
    FILE.replace("The house is red\nand the dog is black.", "La casa es roja y\nel perro es negro.")
      .replace("I read <i>the good book</i> &amp; I sing.", "Leí <i>el libro bueno</i> &amp; canto.")
      .replace("I do not have a dog.", "No tengo un perro."),
  );
  expectError(await translate("fr"), 422, "invalid_language");
});

test("translates the lines of a film within some seconds", async () => {
  const key = await app.key((await app.tenant()).id);
  const { asset } = await uploaded(app, key);
  const time = (k: number) => `00:${String(Math.floor(k / 60)).padStart(2, "0")}:${String(k % 60).padStart(2, "0")}`;
  const cues = Array.from(
    { length: amount(100, 400) },
    (_, k) => `${time(k)}.000 --> ${time(k)}.900\nThe house has ${k} red windows.\n`,
  );
  const track = await subtitled(app, key, asset.id, {}, `WEBVTT\n\n${cues.join("\n")}`);
  const made = await app.as(key).translateSubtitle(asset.id, track.id, { target_language: "es" });
  expect(made.status).toBe(201);
  const { content } = (await app.as(key).getSubtitle(asset.id, made.body.id)).body;
  expect(content).toBe(
    `WEBVTT\n\n${cues.join("\n").replace(/The house has (\d+) red windows\./g, "La casa tiene $1 ventanas rojas.")}`,
  );
});
