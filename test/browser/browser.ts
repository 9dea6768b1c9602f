import { existsSync } from "node:fs";
import { type Browser, type BrowserContextOptions, chromium, type Frame, type Page } from "playwright-core";
import { atEnd } from "../support/folder.ts";

const PROGRAMS = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** The system's Chromium, which speaks to nobody by itself. A file that starts one closes it. */
export function startBrowser(): Promise<Browser> {
  const executablePath = PROGRAMS.find(existsSync);
  if (!executablePath) throw new Error(`No Chromium at ${PROGRAMS.join(", ")}; npm test installs it where it can`);
  return chromium.launch({
    executablePath,
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-background-networking",
      "--disable-quic",
      "--no-first-run",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

export type Visit = {
  page: Page;
  /** Status of the page's own answer. */
  status: number;
  /** Console errors (violations of the content security policy are some), uncaught exceptions, failed requests. */
  faults: string[];
  /** Every address that the page and its frames asked for, blob: and data: apart. */
  requests: URL[];
};

/** Opens `address` in a fresh profile and writes down what happens there. */
export async function visit(browser: Browser, address: string, options?: BrowserContextOptions): Promise<Visit> {
  const context = await browser.newContext(options);
  atEnd(() => context.close());
  const page = await context.newPage();
  const faults: string[] = [];
  const requests: URL[] = [];
  page.on("console", (message) => {
    // Chromium also tells the status of the page itself as an error; tests look at it in `status`.
    const isOwnStatus = message.location().url === address && message.text().startsWith("Failed to load resource");
    if (message.type() === "error" && !isOwnStatus) faults.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => faults.push(`exception: ${error.message}`));
  page.on("requestfailed", (request) => {
    // A player drops what it no longer wants, and a page that is closed drops all.
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

/** What tests look at of a page's <video>; this side has no DOM, and so no types of it. */
export type Video = {
  paused: boolean;
  muted: boolean;
  currentTime: number;
  duration: number;
  readyState: number;
  videoWidth: number;
  videoHeight: number;
  webkitAudioDecodedByteCount: number;
};

/** The video of a page, in our player or bare, or of a frame in it, as it is now; null where there is none. */
export const videoIn = (frame: Page | Frame): Promise<Video | null> =>
  frame.evaluate(() => {
    const { document } = globalThis as any;
    const video = document.querySelector("svc-player")?.video ?? document.querySelector("video");
    if (!video) return null;
    const { paused, muted, currentTime, duration, readyState, videoWidth, videoHeight } = video;
    const { webkitAudioDecodedByteCount } = video;
    return { paused, muted, currentTime, duration, readyState, videoWidth, videoHeight, webkitAudioDecodedByteCount };
  });

/** Resolves when a field of the video has reached `least`. */
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
  if ((await videoIn(frame))?.paused) throw new Error("The video got there without playing");
}
