import { sql } from "drizzle-orm";
import { SERVICE_CLASSES } from "#model/enums.ts";

/** A class of service of tasks; every name is a row of `CLASSES`. */
export type ServiceClass = (typeof SERVICE_CLASSES)[number];

type Service = {
  /** Classes whose running chunk on the same worker it waits for: of two at once, both would be late. */
  waitsFor: readonly ServiceClass[];
  /** Whether it counts as a request of a viewer, of which there are limits. */
  isRequest: boolean;
};

/**
 * What is served before what. `requested` precedes all others; `first`, `ahead` and `abandoned` follow, in the order of the fair
 * queue; `normal` is what is left. Two things keep one tenant from taking all workers: the fair queue (fair-queue.ts), and the
 * limits below.
 *
 * Light work is no class: it is the audio and images of any class, which a worker runs next to a long task.
 */
const CLASSES: Readonly<Record<ServiceClass, Service>> = {
  /** A viewer waits for the segment. It does not wait for the segments that follow another one. */
  requested: { waitsFor: ["requested", "first"], isRequest: true },
  /** The first segments of a video, which is to play before all of it is encoded. */
  first: { waitsFor: ["requested", "first", "ahead"], isRequest: false },
  /** The segments that follow a requested one: the viewer will request them. */
  ahead: { waitsFor: ["requested", "first", "ahead"], isRequest: false },
  /**
   * No request waits for the segment any more. It is still encoded soon and counted: requests that are dropped at once could
   * divide a whole video otherwise.
   */
  abandoned: { waitsFor: ["requested", "first", "ahead"], isRequest: true },
  /** Everything else, in the order of the fair queue. */
  normal: { waitsFor: [], isRequest: false },
};

/** Tasks of segments that viewers have requested and that are not encoded yet, by all tenants and by one. */
export const MAX_REQUESTS = { total: 16, ofTenant: 4 } as const;
/** Urgent tasks that are leased one after another while other tenants wait: strangers may request where videos are public. */
export const URGENT_IN_A_ROW = 4;

/** The classes that count against `MAX_REQUESTS`. */
export const REQUESTS: readonly ServiceClass[] = SERVICE_CLASSES.filter((name) => CLASSES[name].isRequest);

/** Whether it precedes the queue. */
export const isUrgent = ({ serviceClass }: { serviceClass: ServiceClass }): boolean => serviceClass !== "normal";

// As literals: SQLite uses no partial index for parameters.
/** The condition of urgent tasks, as their indexes have it. */
export const IS_URGENT = sql.raw("service_class <> 'normal'");
/** What tasks are ordered by before the fair queue orders them, as the indexes have it: -1 for `requested`, 1 for `normal`. */
export const CLASS_ORDER = sql.raw("(service_class = 'normal') - (service_class = 'requested')");

const URGENT = SERVICE_CLASSES.filter((serviceClass) => isUrgent({ serviceClass }));
const whenWaiting = (name: ServiceClass): string =>
  `when '${name}' then mine.service_class in (${CLASSES[name].waitsFor.map((other) => `'${other}'`).join(", ")})`;
/** Condition of the tasks `mine` of a worker that a task waits for when both would run on it. */
export const IS_WAITED_FOR = sql.raw(
  `case transcoding_tasks.service_class ${URGENT.map(whenWaiting).join(" ")} else 0 end`,
);
