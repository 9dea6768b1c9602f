import { type Placeholder, type SQL, sql } from "drizzle-orm";
import { CLIPS_VERSION } from "#protocol/clip.ts";
import { JOINS_VERSION } from "#protocol/join.ts";
import { TASKS_VERSION, TASKS_VERSIONS } from "#protocol/task.ts";
import type { JobRow, Requirements, TaskRow } from "#storage/db/schema.ts";
import { hasAdditional } from "./encoding-profile.ts";

/** The versions of the protocols that a worker knows, as its claim announces them; 0: it does not know the protocol. */
export type Capabilities = Readonly<Record<"tasks" | "clips" | "joins" | "captions", number>>;

export const NO_CAPABILITIES: Capabilities = { tasks: 0, clips: 0, joins: 0, captions: 0 };
/** The most that a job or a task requires. */
export const ALL_REQUIREMENTS = { tasks: TASKS_VERSION, clips: CLIPS_VERSION, joins: JOINS_VERSION } as const;

/** What a claim announces; a worker of an earlier version leaves out what it does not know. */
export const capabilitiesOf = (
  announced: Partial<Record<keyof Capabilities, number | undefined>> = {},
): Capabilities => ({
  tasks: announced.tasks ?? 0,
  clips: announced.clips ?? 0,
  joins: announced.joins ?? 0,
  captions: announced.captions ?? 0,
});

/** Whether a worker leases tasks, and not only whole jobs. */
export const takesTasks = ({ tasks }: Capabilities): boolean => tasks >= TASKS_VERSIONS.first;

/** What a job requires as a whole, and its parts. Clips and joined assets have no source that could be cut. */
export function requirementsOf(
  job: Pick<JobRow, "clip" | "joined" | "encodingSpec">,
): Record<"requires" | "partsRequire", Requirements | null> {
  const { clip, joined } = job;
  if (!clip && !joined)
    return { requires: null, partsRequire: { tasks: TASKS_VERSIONS[hasAdditional(job) ? "codecs" : "first"] } };
  const clips = clip && { clips: clip.version ?? 1 };
  return { requires: { ...clips, ...(joined && { joins: JOINS_VERSION }) }, partsRequire: null };
}

/** What a task of a job requires: only chunks, and the manifests of all of them, depend on the codecs of the job. */
export const requirementsOfTask = ({ partsRequire }: JobRow, kind: TaskRow["kind"]): Requirements | null =>
  kind === "chunk" || kind === "images" ? partsRequire : null;

/** Whether a worker can run what requires this. */
export const isMetBy = (requires: Requirements | null, capabilities: Capabilities): boolean =>
  Object.entries(requires ?? {}).every(([name, version]) => capabilities[name as keyof Requirements] >= version);

/** Whether nothing in the queue requires more: then no row is checked. */
export const takesAll = (capabilities: Capabilities): boolean => isMetBy(ALL_REQUIREMENTS, capabilities);

/** The condition of jobs or tasks whose `column` a worker meets. */
export const isMet = (column: SQL, capabilities: string | Placeholder): SQL =>
  sql`(${column} is null or not exists (select 1 from json_each(${column}) need
    where need.value > coalesce(json_extract(${capabilities}, '$.' || need.key), 0)))`;
/** The same as a part of a condition; empty when it is always true. */
export const andIsMet = (column: SQL, capabilities: Capabilities): SQL =>
  takesAll(capabilities) ? sql`` : sql`and ${isMet(column, JSON.stringify(capabilities))}`;
