import { and, eq, gt, isNull, lte, or, sql } from "drizzle-orm";
import { transcodingTasks } from "#storage/db/schema.ts";

const tasks = transcodingTasks;

/** A segment of a rendition, counted from 0. */
export type SegmentRef = { rendition: string; number: number };

const hasNumber = (number: number) =>
  and(
    lte(tasks.firstSegment, number),
    or(isNull(tasks.segments), gt(sql`${tasks.firstSegment} + ${tasks.segments}`, number)),
  );

/** Condition of the task that has a segment of the audio. */
export const coversAudio = (number: number) =>
  and(eq(tasks.kind, "audio"), or(isNull(tasks.firstSegment), hasNumber(number)));

/** Condition of the chunk that has a segment of a video rendition. */
export const covers = ({ rendition, number }: SegmentRef) =>
  and(
    eq(tasks.kind, "chunk"),
    hasNumber(number),
    or(isNull(tasks.renditions), sql`exists (select 1 from json_each(${tasks.renditions}) where value = ${rendition})`),
  );
