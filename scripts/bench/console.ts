import { request } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import type { Browser } from "playwright-core";
import { startBrowser } from "#test/support/browser/browser.ts";
import { insertAssets } from "#test/support/many-assets.ts";
import { ADMIN, type Running, secondsOf, startVodbox, tenantWithKey, workFolder } from "./processes.ts";
import { compare, type Result } from "./result.ts";

const ROUNDS = 7;
const SLOWER = 4;
const ASSETS = 100_000;
const CONSOLES = 200;
const OBSERVED_SECONDS = 60;
const GOAL = "the goal";

/** What the console costs its viewers, who wait, and the server, which keeps streams open. */
export async function benchConsole(): Promise<Result[]> {
  const work = workFolder();
  const data = join(work.path, "data");
  let server = await startVodbox(data);
  const browser = await startBrowser();
  try {
    const { tenantId } = await tenantWithKey(server.base);
    await server.stop();
    await insertAssets(data, tenantId, ASSETS);
    server = await startVodbox(data);
    const signIn = await opened(browser, server, null);
    const list = await opened(browser, server, await sessionCookie(server.base));
    const share = await idleShare(server);
    return [
      compare(
        `console: sign-in usable, CPU ${SLOWER} times slower`,
        { ours: signIn.ms, theirs: [1000] },
        { reference: GOAL, unit: "ms", bar: { atMost: 1 } },
      ),
      compare(
        `console: ${ASSETS} assets listed, CPU ${SLOWER} times slower`,
        { ours: list.ms, theirs: [1000] },
        { reference: GOAL, unit: "ms", bar: { atMost: 1 } },
      ),
      compare(
        "console: scripts until the list is shown, gzip",
        { ours: [list.scriptBytes / 1000], theirs: [150] },
        { reference: GOAL, unit: "kB", bar: { atMost: 1 } },
      ),
      compare(
        `console: CPU for ${CONSOLES} open consoles, idle`,
        { ours: [share * 100], theirs: [5] },
        { reference: GOAL, unit: "% of a core", bar: { atMost: 1 } },
      ),
    ];
  } finally {
    await browser.close();
    await server.stop();
    work.remove();
  }
}

/** With an empty cache: until the frame after the sign-in form, or with a session the newest asset, is in the document. */
async function opened(browser: Browser, { base }: Running, cookie: string | null) {
  const ms: number[] = [];
  let scriptBytes = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const context = await browser.newContext();
    if (cookie !== null) {
      const [name, value] = cookie.split("=", 2) as [string, string];
      await context.addCookies([{ name, value, url: base }]);
    }
    const page = await context.newPage();
    // In the page: a question from outside waits for the slowed processor too.
    await page.addInitScript(
      (sought) => {
        const { document } = globalThis as any;
        new (globalThis as any).MutationObserver((_: unknown, observer: { disconnect(): void }) => {
          const isThere = sought
            ? document.body?.textContent.includes(sought)
            : document.querySelector("[type=password]");
          if (!isThere) return;
          observer.disconnect();
          (globalThis as any).requestAnimationFrame(() => performance.mark("usable"));
        }).observe(document, { childList: true, subtree: true });
      },
      cookie === null ? null : `Clip number ${ASSETS}`,
    );
    const session = await context.newCDPSession(page);
    await session.send("Emulation.setCPUThrottlingRate", { rate: SLOWER });
    const scripts: Promise<Buffer>[] = [];
    page.on("response", (response) => {
      if (response.request().resourceType() === "script") scripts.push(response.body());
    });
    await page.goto(`${base}/console`, { waitUntil: "commit" });
    await page.waitForFunction(() => performance.getEntriesByName("usable").length > 0);
    ms.push(await page.evaluate(() => performance.getEntriesByName("usable")[0]?.startTime as number));
    scriptBytes = (await Promise.all(scripts)).reduce((sum, body) => sum + gzipSync(body).length, 0);
    await context.close();
  }
  return { ms, scriptBytes };
}

async function sessionCookie(base: string): Promise<string> {
  const response = await fetch(`${base}/api/v1/session`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ admin_token: ADMIN }),
  });
  return (response.headers.getSetCookie()[0] as string).split(";")[0] as string;
}

/** The share of a core that the server needs for open event streams, beyond what it needs without them. */
async function idleShare({ base, child }: Running): Promise<number> {
  const cookie = await sessionCookie(base);
  const without = await cpuShare(child.pid as number);
  const streams = Array.from({ length: CONSOLES }, () => openStream(base, cookie));
  await Promise.all(streams.map(({ opened }) => opened));
  const withThem = await cpuShare(child.pid as number);
  for (const { close } of streams) close();
  return withThem - without;
}

function openStream(base: string, cookie: string) {
  const sent = request(`${base}/api/v1/events/stream`, { headers: { cookie } });
  const opened = new Promise<void>((resolve, reject) => {
    sent.on("response", (response) => {
      response.resume();
      response.on("error", () => {});
      resolve();
    });
    sent.on("error", reject);
  });
  sent.end();
  return { opened, close: () => void sent.destroy() };
}

async function cpuShare(pid: number): Promise<number> {
  const before = secondsOf(pid);
  const started = performance.now();
  await sleep(OBSERVED_SECONDS * 1000);
  return (secondsOf(pid) - before) / ((performance.now() - started) / 1000);
}
