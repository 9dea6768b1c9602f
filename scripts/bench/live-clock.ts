import { type ChildProcess, spawn } from "node:child_process";

/** The image: the time of day is in its first row of blocks, black or white, the highest bit first. */
export const CLOCK = { width: 640, height: 360, rate: 30, bits: 32, block: 20 };
const BLACK = 16;
const WHITE = 235;
const GREY = 128;

/** A frame (YUV 4:2:0) with the lowest 32 bits of `ms`. */
function frameAt(ms: number): Buffer {
  const { width, height, bits, block } = CLOCK;
  const frame = Buffer.alloc((width * height * 3) / 2, GREY);
  const low = ms % 2 ** bits;
  for (let bit = 0; bit < bits; bit++) {
    const value = Math.floor(low / 2 ** (bits - 1 - bit)) % 2 === 1 ? WHITE : BLACK;
    for (let row = 0; row < block; row++) frame.fill(value, row * width + bit * block, row * width + (bit + 1) * block);
  }
  // Something moves, so that the encoder has work.
  const x = Math.floor(ms / 10) % (width - 60);
  for (let row = 200; row < 260; row++) frame.fill(WHITE, row * width + x, row * width + x + 60);
  return frame;
}

/** ffmpeg publishes the image with its clock, and a tone, until it is stopped. */
export function publishClock(ffmpeg: string, url: string): { child: ChildProcess; stop(): Promise<void> } {
  const { width, height, rate } = CLOCK;
  const raw = ["-f", "rawvideo", "-pix_fmt", "yuv420p", "-s", `${width}x${height}`, "-r", String(rate), "-i", "-"];
  const tone = ["-re", "-f", "lavfi", "-i", "sine=r=48000"];
  const video = [
    "-c:v",
    "libx264",
    "-preset",
    "veryfast",
    "-tune",
    "zerolatency",
    "-b:v",
    "1M",
    "-g",
    String(2 * rate),
  ];
  const args = ["-v", "error", ...raw, ...tone, ...video, "-c:a", "aac", "-f", "flv", "-flush_packets", "1", url];
  const child = spawn(ffmpeg, args, { stdio: ["pipe", "ignore", "inherit"] });
  child.stdin.on("error", () => {});
  const startedAt = Date.now();
  let frames = 0;
  const timer = setInterval(() => {
    for (; startedAt + (frames * 1000) / rate <= Date.now(); frames++)
      child.stdin.write(frameAt(startedAt + (frames * 1000) / rate));
  }, 5);
  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
  return {
    child,
    stop() {
      clearInterval(timer);
      // The tone has no end of its own.
      child.stdin.end();
      child.kill("SIGINT");
      return closed;
    },
  };
}
