import { and, asc, eq, inArray, isNull, lte, or, type SQL } from "drizzle-orm";
import type * as v from "valibot";
import { pacer, sha256 } from "#lib/base";
import type { ClosedCaptions } from "#protocol/source-texts.ts";
import type { WrittenRendition } from "#protocol/task.ts";
import type { TaskCompletion } from "#protocol/worker.ts";
import type { Db } from "#storage/db/open.ts";
import { type TaskRow, transcodingTasks } from "#storage/db/schema.ts";
import { incomplete } from "../captions.ts";
import { planOf } from "./plan-of.ts";

type Completion = v.InferOutput<typeof TaskCompletion>;
type Captions = Pick<Completion, "subtitle_paths" | "caption_errors" | "separate_captions">;
/** The result of a completed `chunk` or `audio` task; `source_sha256` is of the source, where the task computed it. */
export type PartResult = Captions & {
  written: WrittenRendition[];
  source_sha256?: string;
  isPartial?: true;
  closed_captions?: ClosedCaptions;
};

/**
 * Whether a task is the one of its attempt that creates captions: of audio in parts the second one, because a viewer waits for the
 * first.
 */
export const reportsCaptions = ({ kind, knownAsJob, firstSegment, number }: CaptioningTask): boolean =>
  knownAsJob || kind === "whole" || (kind === "audio" && (firstSegment === null || number === 1));
/** Whether a task reads the closed captions in the video: the one that creates captions, or without audio the chunk with number 0. */
export async function reportsClosedCaptions(
  db: Db,
  task: CaptioningTask & Pick<TaskRow, "attemptId">,
): Promise<boolean> {
  if (reportsCaptions(task)) return true;
  return task.kind === "chunk" && task.number === 0 && (await planOf(db, task.attemptId))?.has_audio === false;
}
type CaptioningTask = Pick<TaskRow, "kind" | "knownAsJob" | "firstSegment" | "number">;

/** Tasks that are read at once: a chunk has a few kilobytes. */
const PAGE = 50;

/** What a part reports to have written. Throws 422 `invalid_transcoding_result`. */
export function partResult(
  { written, subtitle_paths, caption_errors, separate_captions, closed_captions, media, partial }: Completion,
  kind: TaskRow["kind"],
): PartResult {
  if (!written || written.length === 0) return incomplete("written", "is required");
  if (new Set(written.map(({ name }) => name)).size < written.length) return incomplete("written", "repeats a name");
  const none = { subtitle_paths: {}, caption_errors: {} };
  const captions =
    kind === "audio" ? { subtitle_paths, caption_errors, ...(separate_captions && { separate_captions }) } : none;
  const sum = media?.source_sha256;
  return {
    written,
    ...captions,
    ...(closed_captions && { closed_captions }),
    ...(sum && { source_sha256: sum }),
    ...(partial && { isPartial: true }),
  };
}

/** The hash of the init segment of a rendition. */
export const initHash = ({ init }: WrittenRendition): string =>
  sha256(JSON.stringify([init.timescale, init.codec, init.width, init.height, init.delay, init.sha256]));

/** Those of the chunks of an attempt that are complete, by rendition. An attempt of an older version has none. */
export const initHashes = (stored: string | null | undefined): Record<string, string> =>
  stored?.startsWith("{") ? JSON.parse(stored) : {};

/** Why the segments are not exactly those of the task; null when they are. */
export function whyNotExact(task: TaskRow, { written }: PartResult): string | null {
  for (const { name, first, segments } of written) {
    if (first !== (task.firstSegment ?? 0)) return `${name} begins with segment ${first}.`;
    if (task.segments !== null && segments.length !== task.segments)
      return `${name} has ${segments.length} segments instead of ${task.segments}.`;
    if (segments.length !== written[0]?.segments.length && task.kind === "chunk")
      return `${name} has another number of segments than ${written[0]?.name}.`;
    if (segments.length === 0) return `${name} has no segments.`;
  }
  return null;
}

/** All renditions of an attempt whose parts are complete: video first, each with its segments in their order. */
export async function allWritten(db: Db, attemptId: number): Promise<WrittenRendition[]> {
  const byName = new Map<string, WrittenRendition>();
  for (const kind of ["chunk", "audio"] as const)
    for await (const { result } of resultsOf(db, attemptId, kind))
      for (const { name, init, first, segments } of result.written) {
        const merged = byName.get(name) ?? { name, init, first: 0, segments: [] };
        byName.set(name, merged);
        if (first !== merged.segments.length)
          throw new Error(`Segment ${merged.segments.length} of ${name} is missing`);
        for (const segment of segments) merged.segments.push(segment);
      }
  return [...byName.values()];
}

/**
 * What tasks report besides their segments: one part of the audio of captions, null without audio, and one part of the
 * audio or a chunk of the source's checksum: the last or the first part, by the version of the worker. Closed captions as
 * `reportsClosedCaptions`.
 */
export async function reportedByParts(
  db: Db,
  attemptId: number,
): Promise<{ captions: Captions | null; closedCaptions: ClosedCaptions | undefined; sourceSha256: string | null }> {
  let captions: Captions | null = null;
  let closedCaptions: ClosedCaptions | undefined;
  let sourceSha256: string | null = null;
  const { number, segments } = transcodingTasks;
  for (const [kind, which] of [
    ["audio", or(lte(number, 1), isNull(segments))],
    ["chunk", eq(number, 0)],
  ] as const)
    for await (const { task, result } of resultsOf(db, attemptId, kind, which)) {
      const { source_sha256, subtitle_paths, caption_errors, separate_captions, closed_captions } = result;
      if (reportsCaptions(task)) captions = { subtitle_paths, caption_errors, separate_captions };
      closedCaptions ??= closed_captions;
      sourceSha256 ??= source_sha256 ?? null;
    }
  return { captions, closedCaptions, sourceSha256 };
}

/** The results of all completed tasks of a kind, or of `which` of them, in the order of their segments. */
async function* resultsOf(
  db: Db,
  attemptId: number,
  kind: TaskRow["kind"],
  which?: SQL,
): AsyncGenerator<{ task: CaptioningTask; result: PartResult }> {
  const tasks = transcodingTasks;
  const ids = await db
    .select({ id: tasks.id })
    .from(tasks)
    .where(and(eq(tasks.attemptId, attemptId), eq(tasks.status, "completed"), eq(tasks.kind, kind), which))
    .orderBy(asc(tasks.firstSegment), asc(tasks.number))
    .all();
  const pace = pacer();
  for (let from = 0; from < ids.length; from += PAGE) {
    await pace();
    const page = ids.slice(from, from + PAGE).map(({ id }) => id);
    const rows = await db
      .select({
        kind: tasks.kind,
        knownAsJob: tasks.knownAsJob,
        firstSegment: tasks.firstSegment,
        number: tasks.number,
        result: tasks.result,
      })
      .from(tasks)
      .where(inArray(tasks.id, page))
      .orderBy(asc(tasks.firstSegment), asc(tasks.number))
      .all();
    for (const { result, ...task } of rows) if (result) yield { task, result: result as PartResult };
  }
}
