import * as v from "valibot";
import type { SubtitleWarning } from "#lib/subtitles";
import { describedAs } from "./fields.ts";
import { CodeField } from "./record-fields.ts";

/** `warnings` of a subtitle, in the API and in events. */
export const SubtitleWarnings = v.pipe(
  v.array(
    v.pipe(
      v.object({
        code: describedAs(CodeField, v.picklist(["cues_skipped"])),
        count: v.pipe(v.number(), v.description("Number of cues that were left out")),
        message: v.pipe(v.string(), v.description("What was left out, and the lines of the file")),
      }),
      v.title("SubtitleWarning"),
    ),
  ),
  v.description("What was left out of the file that the text comes from; empty when nothing was"),
) satisfies v.GenericSchema<SubtitleWarning[]>;
