import * as v from "valibot";
import { shownLine } from "#model/shown-text.ts";
import { WARNING_CODES, WARNINGS } from "#model/warnings.ts";
import { Text } from "./fields.ts";

/** A source has at most 64 tracks (`-max_streams` in src/media/ffmpeg.ts), each of which may be left out. */
const MAX_WARNINGS = 80;
/** Bytes of UTF-8: lists of assets contain all messages. */
const MAX_MESSAGE_BYTES = 300;

export const Warning = v.object({
  code: v.pipe(
    v.picklist(WARNING_CODES, `must be ${WARNING_CODES.join(" or ")}`),
    v.description(
      Object.entries(WARNINGS)
        .map(([code, text]) => `\`${code}\`: ${text}`)
        .join(". "),
    ),
  ),
  message: v.pipe(Text(MAX_MESSAGE_BYTES), v.description("For people: what was left out, or corrected")),
});

/** What a worker reports. It may be hostile, so that everything is limited. */
export const ReportedWarnings = v.pipe(
  v.array(
    v.object({
      ...Warning.entries,
      message: v.pipe(
        Warning.entries.message,
        v.check(
          (text) => Buffer.byteLength(text) <= MAX_MESSAGE_BYTES,
          `must have at most ${MAX_MESSAGE_BYTES} bytes of UTF-8`,
        ),
        v.transform(shownLine),
      ),
    }),
  ),
  v.maxLength(MAX_WARNINGS, `must have at most ${MAX_WARNINGS} entries`),
);
