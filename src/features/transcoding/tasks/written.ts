import { and, asc, eq, inArray, isNull, or, type SQL } from "drizzle-orm";
import type * as v from "valibot";
import { pacer, sha256 } from "#lib/base";
import type { WrittenRendition } from "#protocol/task.ts";
import type { TaskCompletion } from "#protocol/worker.ts";
import type { Db } from "#storage/db/open.ts";
import { type TaskRow, transcodingTasks } from "#storage/db/schema.ts";
import { incomplete } from "../captions.ts";

type Completion = v.InferOutput<typeof TaskCompletion>;
type Captions = Pick<Completion, "subtitle_paths" | "caption_errors">;
/** The result of a completed `chunk` or `audio` task; `source_sha256` is of the source, where the task computed it. */
export type PartResult = Captions & { written: WrittenRendition[]; source_sha256?: string; isPartial?: true };

/** Tasks that are read at once: a chunk has a few kilobytes. */
const PAGE = 50;

/** What a part reports to have written. Throws 422 `invalid_transcoding_result`. */
export function partResult(
  { written, subtitle_paths, caption_errors, media, partial }: Completion,
  kind: TaskRow["kind"],
): PartResult {
  if (!written || written.length === 0) return incomplete("written", "is required");
  if (new Set(written.map(({ name }) => name)).size < written.length) return incomplete("written", "repeats a name");
  const captions = kind === "audio" ? { subtitle_paths, caption_errors } : { subtitle_paths: {}, caption_errors: {} };
  const sum = media?.source_sha256;
  return { written, ...captions, ...(sum && { source_sha256: sum }), ...(partial && { isPartial: true }) };
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
    for await (const { written } of resultsOf(db, attemptId, kind))
      for (const { name, init, first, segments } of written) {
        const merged = byName.get(name) ?? { name, init, first: 0, segments: [] };
        byName.set(name, merged);
        if (first !== merged.segments.length)
          throw new Error(`Segment ${merged.segments.length} of ${name} is missing`);
        for (const segment of segments) merged.segments.push(segment);
      }
  return [...byName.values()];
}

/**
 * What tasks report besides their segments: the first part of the audio of captions, null without audio, and one part of the
 * audio or a chunk of the source's checksum: the last or the first part, by the version of the worker.
 */
export async function reportedByParts(
  db: Db,
  attemptId: number,
): Promise<{ captions: Captions | null; sourceSha256: string | null }> {
  let captions: Captions | null = null;
  let sourceSha256: string | null = null;
  const isFirst = eq(transcodingTasks.number, 0);
  const isEither = or(isFirst, isNull(transcodingTasks.segments));
  for (const [kind, which] of [
    ["audio", isEither],
    ["chunk", isFirst],
  ] as const)
    for await (const { source_sha256, subtitle_paths, caption_errors } of resultsOf(db, attemptId, kind, which)) {
      // In the order of segments: the first one comes first.
      if (kind === "audio") captions ??= { subtitle_paths, caption_errors };
      sourceSha256 ??= source_sha256 ?? null;
    }
  return { captions, sourceSha256 };
}

/** The results of all completed tasks of a kind, or of `which` of them, in the order of their segments. */
async function* resultsOf(db: Db, attemptId: number, kind: TaskRow["kind"], which?: SQL): AsyncGenerator<PartResult> {
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
      .select({ result: tasks.result })
      .from(tasks)
      .where(inArray(tasks.id, page))
      .orderBy(asc(tasks.firstSegment), asc(tasks.number))
      .all();
    for (const { result } of rows) if (result) yield result as PartResult;
  }
}
