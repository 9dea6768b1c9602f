import { existsSync } from "node:fs";
import { type Browser, type BrowserContextOptions, chromium, type Frame, type Page } from "playwright-core";
import { afterEachFile } from "../after-file.ts";
import { atEnd } from "../folder.ts";

/** The first one has no windows: a page costs it a sixth of the processor time. */
const PROGRAMS = [
  "/usr/bin/chromium-headless-shell",
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
];

/** Composition and canvases as with a GPU, which SwiftShader emulates. */
export const EMULATED_GPU = [
  ...["--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"],
  ...["--ignore-gpu-blocklist", "--enable-gpu-rasterization"],
];

/** The system's Chromium, its headless shell where there is one, without background requests, with further `flags`. The caller closes it. */
export function startBrowser(...flags: string[]): Promise<Browser> {
  const executablePath = PROGRAMS.find(existsSync);
  if (!executablePath) throw new Error(`No Chromium at ${PROGRAMS.join(", ")}; npm test installs it where possible`);
  return chromium.launch({
    executablePath,
    args: [
      "--no-sandbox",
      ...(flags.some((flag) => flag.startsWith("--use-gl=")) ? [] : ["--disable-gpu"]),
      "--disable-background-networking",
      "--disable-quic",
      "--no-first-run",
      "--disable-component-update",
      "--disable-sync",
      ...flags,
    ],
  });
}

/** By flags. They end with this process: Playwright kills the browsers of a process that exits. */
const browsers = new Map<string, Promise<Browser>>();

/**
 * The browser with these flags that all test files of this process use; do not close it. Each page has a context of its own,
 * and with it its own cookies, cache and storage. What a file leaves open is closed when it ends.
 */
export async function sharedBrowser(...flags: string[]): Promise<Browser> {
  const name = flags.join(" ");
  const running = await browsers.get(name);
  if (!running?.isConnected()) browsers.set(name, startBrowser(...flags));
  return browsers.get(name) as Promise<Browser>;
}

afterEachFile.add(async () => {
  for (const browser of await Promise.all(browsers.values()))
    await Promise.all(browser.contexts().map((context) => context.close()));
});

export type Visit = {
  page: Page;
  /** Status of the page's own response. */
  status: number;
  /** Console errors (including violations of the content security policy), uncaught exceptions, failed requests. */
  faults: string[];
  /** Every URL that the page and its frames requested, except blob: and data:. */
  requests: URL[];
};

/** Opens `address` in a new profile and records what happens. */
export async function visit(browser: Browser, address: string, options?: BrowserContextOptions): Promise<Visit> {
  const context = await browser.newContext(options);
  // Only ends what would never end: the machine may be busy.
  context.setDefaultTimeout(120_000);
  atEnd(() => context.close());
  const page = await context.newPage();
  const faults: string[] = [];
  const requests: URL[] = [];
  page.on("console", (message) => {
    // Chromium also reports the status of the page itself as an error; tests check `status` instead.
    const { url } = message.location();
    const isFailedLoad = message.text().startsWith("Failed to load resource");
    const isOwnStatus = isFailedLoad && url === address;
    if (message.type() === "error" && !isOwnStatus)
      faults.push(`console: ${message.text()}${isFailedLoad ? ` ${url}` : ""}`);
  });
  page.on("pageerror", (error) => faults.push(`exception: ${error.message}`));
  page.on("requestfailed", (request) => {
    // A player aborts requests that it no longer needs, and a page that is closed aborts all.
    const reason = request.failure()?.errorText ?? "";
    if (reason !== "net::ERR_ABORTED") faults.push(`${request.url()}: ${reason}`);
  });
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (url.protocol !== "blob:" && url.protocol !== "data:") requests.push(url);
  });
  const response = await page.goto(address);
  return { page, status: response?.status() ?? 0, faults, requests };
}

/** The properties of a page's <video> that tests read; this side has no DOM, and so no types of it. */
export type Video = {
  paused: boolean;
  ended: boolean;
  muted: boolean;
  currentTime: number;
  duration: number;
  readyState: number;
  videoWidth: number;
  videoHeight: number;
  webkitAudioDecodedByteCount: number;
};

/** The current state of the video of a page, in our player or bare, or of a frame in it; null when there is none. */
export const videoIn = (frame: Page | Frame): Promise<Video | null> =>
  frame.evaluate(() => {
    const { document } = globalThis as any;
    const video = document.querySelector("svc-player")?.video ?? document.querySelector("video");
    if (!video) return null;
    const { paused, ended, muted, currentTime, duration, readyState, videoWidth, videoHeight } = video;
    const { webkitAudioDecodedByteCount } = video;
    return {
      paused,
      ended,
      muted,
      currentTime,
      duration,
      readyState,
      videoWidth,
      videoHeight,
      webkitAudioDecodedByteCount,
    };
  });

/** Resolves when a property of the video has reached `least`. */
export async function untilVideo(frame: Page | Frame, field: keyof Video, least: number): Promise<void> {
  await frame.waitForFunction(
    ([name, limit]) => {
      const { document } = globalThis as any;
      return (document.querySelector("svc-player")?.video ?? document.querySelector("video"))?.[name] >= limit;
    },
    [field, least] as const,
    { timeout: 60_000, polling: 50 },
  );
}

/** Resolves when the video has played up to `seconds`. */
export async function untilPlayed(frame: Page | Frame, seconds: number): Promise<void> {
  await untilVideo(frame, "currentTime", seconds);
  const video = await videoIn(frame);
  // It is also paused at its end, which a busy machine reaches before this.
  if (video?.paused && !video.ended) throw new Error("The video got there without playing");
}
