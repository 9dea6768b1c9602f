import { Writable } from "node:stream";
import { type Binaries, type RunOptions, run, untrustedInput } from "./ffmpeg.ts";

/** All of a large source is read, without decoding. */
const LIMIT_MS = 3_600_000;
/** Longer than any line that ffprobe prints of a packet. */
const MAX_LINE = 100;
/** Parsers return nothing of damaged packets. */
const UNPARSED = ["-fflags", "+noparse+nofillin"];

type Options = Pick<RunOptions, "cwd" | "memoryBytes" | "onMove" | "pidDir" | "signal">;

/**
 * The streams of a file that have packets, by reading all of them. `onMove` is called as they are read: ffprobe's own count
 * says nothing before its end, which takes minutes for a large source. Throws MediaError.
 */
export async function streamsWithPackets(
  path: string,
  { ffprobe }: Pick<Binaries, "ffprobe">,
  { onMove, ...options }: Options,
): Promise<ReadonlySet<number>> {
  const found = new Set<number>();
  let rest = "";
  const output = new Writable({
    write(chunk: Buffer, _encoding, done) {
      const lines = (rest + chunk.toString("latin1")).split("\n");
      rest = (lines.pop() ?? "").slice(0, MAX_LINE);
      for (const line of lines) {
        const index = Number.parseInt(line, 10);
        if (Number.isSafeInteger(index)) found.add(index);
      }
      onMove?.();
      done();
    },
  });
  await run(ffprobe, {
    ...options,
    args: [
      ...["-hide_banner", "-loglevel", "error", "-of", "csv=p=0", ...UNPARSED],
      ...["-show_entries", "packet=stream_index", ...untrustedInput(path)],
    ],
    reads: [path],
    timeLimitMs: LIMIT_MS,
    output,
  });
  return found;
}
