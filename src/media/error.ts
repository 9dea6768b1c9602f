export type MediaErrorCode =
  | "input_invalid"
  | "source_missing"
  | "input_has_no_media"
  | "encode_failed"
  | "timeout"
  | "out_of_space"
  | "out_of_memory"
  | "aborted";

/** What went wrong with a source or an encode. `retryable` is false where another attempt would end the same way. */
export class MediaError extends Error {
  readonly code: MediaErrorCode;
  readonly retryable: boolean;
  /** The last lines that ffmpeg printed; it may be empty. */
  readonly logTail: string;
  constructor(code: MediaErrorCode, message: string, retryable: boolean, logTail = "") {
    super(message);
    this.name = "MediaError";
    this.code = code;
    this.retryable = retryable;
    this.logTail = logTail;
  }
}

const INPUT_FAULTS = [
  "Invalid data found when processing input",
  "moov atom not found",
  "Decoding requested, but no decoder found",
  "not on whitelist",
  "does not contain any stream",
  "matches no streams",
  "File ended prematurely",
  "Error marking filters as finished",
];
const DECODER_MISSING = /Decoder \(codec [^()]{0,100}\) not found/;

/** Reads ffmpeg's own words: it has one exit code (1) for nearly everything. */
export function classify(exit: { code: number | null; signal: string | null }, logTail: string): MediaError {
  if (/No space left on device|Disk quota exceeded|File too large/.test(logTail)) {
    return new MediaError("out_of_space", "There is no space left to write the result.", true, logTail);
  }
  if (/Cannot allocate memory|malloc of size \d{1,20} failed|Failed to allocate|bad_alloc/.test(logTail)) {
    return new MediaError("out_of_memory", "The source takes more memory than there is for one.", false, logTail);
  }
  if (exit.signal === "SIGXCPU") {
    return new MediaError("timeout", "The source took more processor time than there is for one.", false, logTail);
  }
  if (exit.signal) {
    return new MediaError("encode_failed", `ffmpeg was ended by ${exit.signal}.`, true, logTail);
  }
  // 69: more than two thirds of the frames could not be decoded (-max_error_rate).
  if (exit.code === 69 || INPUT_FAULTS.some((fault) => logTail.includes(fault)) || DECODER_MISSING.test(logTail)) {
    return new MediaError("input_invalid", "The source is damaged or of a kind that is not supported.", false, logTail);
  }
  return new MediaError("encode_failed", `ffmpeg ended with code ${exit.code}.`, true, logTail);
}
