export type MediaErrorCode =
  | "input_invalid"
  | "unsupported_format"
  | "source_too_long"
  | "source_missing"
  | "input_has_no_media"
  | "encode_failed"
  | "timeout"
  | "out_of_space"
  | "out_of_memory"
  | "clip_not_possible"
  | "join_not_possible"
  | "encodings_differ"
  | "aborted";

/** What failed in a source or an encode. `retryable` is false when another attempt would fail in the same way. */
export class MediaError extends Error {
  readonly code: MediaErrorCode;
  readonly retryable: boolean;
  /** The last lines of ffmpeg's log; may be empty. */
  readonly logTail: string;
  /** ffmpeg's exit code when it failed by itself, for an unrecognized reason. */
  readonly exitCode: number | null;
  /** The signal that ended ffmpeg, if one did and the reason is not known. */
  readonly signal: string | null;
  constructor(
    code: MediaErrorCode,
    message: string,
    retryable: boolean,
    logTail = "",
    exit: { code: number | null; signal: string | null } = { code: null, signal: null },
  ) {
    super(message);
    this.name = "MediaError";
    this.code = code;
    this.retryable = retryable;
    this.logTail = logTail;
    this.exitCode = exit.code;
    this.signal = exit.signal;
  }
}

const INPUT_FAULTS = [
  "Invalid data found when processing input",
  "moov atom not found",
  "does not contain any stream",
  "matches no streams",
  "File ended prematurely",
  // Followed by an error of input, although the file can be read to its end.
  "Truncating packet of size",
  "Error marking filters as finished",
];
const FORMAT_FAULTS = ["Decoding requested, but no decoder found", "not on whitelist"];
const DECODER_MISSING = /Decoder \(codec [^()]{0,100}\) not found/;

/** Whether the run failed because of the source: doing it in another way may help, unlike on a full disk. */
export const isSourceFault = (error: unknown): error is MediaError =>
  error instanceof MediaError && SOURCE_FAULTS.includes(error.code);
const SOURCE_FAULTS: readonly MediaErrorCode[] = ["input_invalid", "unsupported_format", "encode_failed"];

/** Matches ffmpeg's messages: it uses exit code 1 for nearly every error. */
export function classify(exit: { code: number | null; signal: string | null }, logTail: string): MediaError {
  if (/No space left on device|Disk quota exceeded|File too large/.test(logTail)) {
    return new MediaError("out_of_space", "There is no disk space left for the result.", true, logTail);
  }
  if (/Cannot allocate memory|malloc of size \d{1,20} failed|Failed to allocate|bad_alloc/.test(logTail)) {
    return new MediaError("out_of_memory", "The source exceeds the memory limit.", false, logTail);
  }
  if (exit.signal === "SIGXCPU") {
    return new MediaError("timeout", "The source exceeds the CPU time limit.", false, logTail);
  }
  if (exit.signal) {
    return new MediaError("encode_failed", `ffmpeg was terminated by ${exit.signal}.`, true, logTail, exit);
  }
  if (FORMAT_FAULTS.some((fault) => logTail.includes(fault)) || DECODER_MISSING.test(logTail)) {
    return new MediaError("unsupported_format", "The format of the source is not supported.", false, logTail);
  }
  // 69: more than two thirds of the frames could not be decoded (-max_error_rate).
  if (exit.code === 69 || INPUT_FAULTS.some((fault) => logTail.includes(fault))) {
    return new MediaError("input_invalid", "The source is damaged and cannot be decoded.", false, logTail);
  }
  return new MediaError("encode_failed", `ffmpeg exited with code ${exit.code}.`, true, logTail, exit);
}
