import { createReadStream, existsSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import type { Browser } from "playwright-core";
import { sharedBrowser } from "../browser/browser.ts";

const packages = join(import.meta.dirname, "../../../node_modules");
const LIBRARIES: Record<string, string> = {
  "/hls.js": "hls.js/dist/hls.min.js",
  "/dash.js": "dashjs/dist/modern/umd/dash.all.min.js",
  "/shaka.js": "shaka-player/dist/shaka-player.compiled.js",
};
const TYPES: Record<string, string> = {
  ".js": "text/javascript",
  ".m3u8": "application/vnd.apple.mpegurl",
  ".mpd": "application/dash+xml",
  ".mp4": "video/mp4",
  ".m4s": "video/iso.segment",
};

/** The result of playing one asset. */
export type Played = {
  player: string;
  error: string | null;
  /** Seconds between the end of playback and the reported duration. */
  left: number;
  duration: number;
  frames: number;
  soundBytes: number;
  size: string | null;
  /** Audio tracks that it offers. */
  audioTracks: number;
};

/** Only the last seconds of longer ones are played. */
const WHOLE_SECONDS = 10;
const LAST_SECONDS = 3;

/** Runs in the page: three videos at once, each played to its end by its own library. */
const PAGE = `<!doctype html><title>Players</title><video></video><video></video><video></video>
<script src="/hls.js"></script><script src="/dash.js"></script><script src="/shaka.js"></script><script>
shaka.polyfill.installAll();
const openers = {
  async "hls.js"(video, folder, fail, query) {
    const hls = new Hls();
    hls.on(Hls.Events.ERROR, (_, { fatal, details, error }) => fatal && fail(details + " " + error?.message));
    hls.loadSource(folder + "/master.m3u8" + query);
    hls.attachMedia(video);
    return () => hls.audioTracks.length;
  },
  async "dash.js"(video, folder, fail, query) {
    const player = dashjs.MediaPlayer().create();
    player.on("error", ({ error }) => fail(error.code + " " + error.message));
    player.initialize(video, folder + "/manifest.mpd" + query, false);
    return () => player.getTracksFor("audio").length;
  },
  async shaka(video, folder, fail, query) {
    const player = new shaka.Player();
    player.addEventListener("error", ({ detail }) => fail(detail.code + " " + detail.data));
    await player.attach(video);
    await player.load(folder + "/manifest.mpd" + query);
    return () => player.getAudioTracks().length;
  },
};
const reached = (video, name, isThere) => new Promise((done) => isThere() ? done() : video.addEventListener(name, done, { once: true }));
async function played(player, video, folder, query) {
  video.muted = true;
  let audioTracks = () => 0;
  let error = null;
  try {
    await new Promise((done, refuse) => {
      const fail = (text) => refuse(new Error(text));
      video.addEventListener("error", () => fail(video.error.message));
      (async () => {
        audioTracks = await openers[player](video, folder, fail, query);
        await reached(video, "loadedmetadata", () => video.readyState > 0);
        if (video.duration > ${WHOLE_SECONDS}) video.currentTime = video.duration - ${LAST_SECONDS};
        // dash.js ends a stream when its clock next ticks; one of a second may be over before, and is then never ended.
        else if (video.duration > 3) video.playbackRate = 2;
        await reached(video, "canplay", () => video.readyState > 2);
        await video.play();
        // On a busy machine dash.js may not end a stream that it has played to its last frame.
        await new Promise((end) => {
          video.addEventListener("ended", end, { once: true });
          setInterval(() => video.currentTime >= video.duration - 0.02 && end(), 500);
        });
        done();
      })().catch(refuse);
      setTimeout(() => fail("not at its end after a minute, but at " + video.currentTime), 60_000);
    });
  } catch (caught) {
    error = String(caught?.message ?? caught) + (caught?.code ? " " + caught.code + " " + caught.data : "");
  }
  return {
    player, error, left: video.duration - video.currentTime, duration: video.duration,
    frames: video.getVideoPlaybackQuality().totalVideoFrames, soundBytes: video.webkitAudioDecodedByteCount,
    size: video.videoWidth > 0 ? video.videoWidth + "x" + video.videoHeight : null, audioTracks: audioTracks(),
  };
}
window.playAll = (folder, query, only) =>
  Promise.all((only ?? Object.keys(openers)).map((name, at) => played(name, document.querySelectorAll("video")[at], folder, query)));
</script>`;

/** Runs in the page before its scripts: the browser does not support types that match. */
const withoutTypes = ({ source }: RegExp) => `{
  const isHidden = (type) => new RegExp(${JSON.stringify(source)}).test(type);
  const { isTypeSupported } = MediaSource;
  MediaSource.isTypeSupported = (type) => !isHidden(type) && isTypeSupported.call(MediaSource, type);
  const { canPlayType } = HTMLMediaElement.prototype;
  HTMLMediaElement.prototype.canPlayType = function (type) {
    return isHidden(type) ? "" : canPlayType.call(this, type);
  };
  const { mediaCapabilities } = navigator;
  const decodingInfo = mediaCapabilities.decodingInfo.bind(mediaCapabilities);
  mediaCapabilities.decodingInfo = async (configuration) => {
    const info = await decodingInfo(configuration);
    const isRefused = isHidden(configuration.video?.contentType ?? "");
    return isRefused ? { ...info, supported: false, smooth: false, powerEfficient: false } : info;
  };
}`;

/** Runs in the page before its scripts. */
const KEEP_APPENDED = `{
  const types = new WeakMap();
  const kept = [];
  const { addSourceBuffer } = MediaSource.prototype;
  MediaSource.prototype.addSourceBuffer = function (type) {
    const buffer = addSourceBuffer.call(this, type);
    types.set(buffer, type);
    return buffer;
  };
  const { appendBuffer } = SourceBuffer.prototype;
  SourceBuffer.prototype.appendBuffer = function (data) {
    const bytes = new Uint8Array(ArrayBuffer.isView(data) ? data.buffer.slice(data.byteOffset, data.byteOffset + data.byteLength) : data.slice(0));
    kept.push({ type: types.get(this), offset: this.timestampOffset, bytes });
    return appendBuffer.call(this, data);
  };
  window.appended = () =>
    kept.map(({ type, offset, bytes }) => {
      let text = "";
      for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
      return { type, offset, base64: btoa(text) };
    });
}`;

/** A piece of a stream that a player gave to the browser. */
export type Appended = {
  player: string;
  /** Media type with codecs. */
  type: string;
  /** What the browser adds to its times, in seconds. */
  offset: number;
  data: Buffer;
};

export type PlayOptions = {
  /** Media types, with codec strings, that the browser is made to refuse. */
  without?: RegExp;
  /** The query of the manifests, with its question mark. */
  query?: string;
  /** The players to use; all by default. */
  only?: readonly ("hls.js" | "dash.js" | "shaka")[];
  /** Called with the URL of each request. */
  onRequest?: (url: string) => void;
};

/** A browser, and a server for the directory `root`. */
export class Players {
  readonly #root: string;
  #server: Server | undefined;
  #browser: Promise<Browser> | undefined;
  #base: Promise<string> | undefined;

  constructor(root: string) {
    this.#root = root;
  }

  /** With hls.js, dash.js and Shaka. `folder` is below the root, with both manifests. */
  play = (folder: string): Promise<Played[]> => this.playAt(`/made/${folder}`);

  /** The same from another server: `address` is the URL of the manifests' directory. */
  async playAt(address: string, { without, query = "", only, onRequest }: PlayOptions = {}): Promise<Played[]> {
    this.#browser ??= sharedBrowser();
    this.#base ??= this.#serve();
    const [browser, base] = await Promise.all([this.#browser, this.#base]);
    const page = await browser.newPage();
    try {
      if (without) await page.addInitScript(withoutTypes(without));
      if (onRequest) page.on("request", (request) => onRequest(request.url()));
      await page.goto(base);
      return (await page.evaluate(`playAll(...${JSON.stringify([address, query, only ?? null])})`)) as Played[];
    } finally {
      await page.close();
    }
  }

  /** Plays the same, and returns what each player gave to the browser, in order. */
  async appended(folder: string): Promise<Appended[]> {
    this.#browser ??= sharedBrowser();
    this.#base ??= this.#serve();
    const [browser, base] = await Promise.all([this.#browser, this.#base]);
    const all: Appended[] = [];
    for (const player of ["hls.js", "dash.js", "shaka"]) {
      const page = await browser.newPage();
      try {
        await page.addInitScript(KEEP_APPENDED);
        await page.goto(base);
        await page.evaluate(`playAll(...${JSON.stringify([`/made/${folder}`, "", [player]])})`);
        const found = (await page.evaluate("appended()")) as { type: string; offset: number; base64: string }[];
        all.push(...found.map(({ base64, ...one }) => ({ ...one, player, data: Buffer.from(base64, "base64") })));
      } finally {
        await page.close();
      }
    }
    return all;
  }

  async close(): Promise<void> {
    this.#server?.closeAllConnections();
    this.#server?.close();
  }

  #serve(): Promise<string> {
    const server = createServer((request, response) => {
      const path = request.url ?? "/";
      if (path === "/") return response.setHeader("content-type", "text/html").end(PAGE);
      const library = LIBRARIES[path];
      const file = library ? join(packages, library) : join(this.#root, path.slice("/made/".length));
      if (!existsSync(file)) return response.writeHead(404).end();
      response.setHeader("content-type", TYPES[extname(file)] ?? "application/octet-stream");
      return createReadStream(file).pipe(response);
    });
    this.#server = server;
    return new Promise((done) =>
      server.listen(0, "127.0.0.1", () => done(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`)),
    );
  }
}

/** The renditions whose segments are in URLs. */
export const renditionsIn = (urls: readonly string[]) => [
  ...new Set(urls.map((url) => /\/([^/]+)\/(?:init\.mp4|\d+\.m4s)/.exec(url)?.[1] ?? "").filter(Boolean)),
];
