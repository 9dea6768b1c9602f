import type { FromIngest } from "#live/ingest/messages.ts";
import type { InitEvent, SegmentEvent } from "#live/playlists/events.ts";
import type { TimelineState } from "#live/playlists/timeline-types.ts";
import type { RenditionReport } from "#live/renditions/messages.ts";
import { INIT_NAME } from "#media/arguments.ts";
import type { LiveStream } from "../registry.ts";

/** What the ingest process reports of a running stream. */
export type StreamReport = Exclude<Extract<FromIngest, { stream: string }>, { finished: unknown }>;
type Without<Report> = Report extends unknown ? Omit<Report, "stream"> : never;
/** One that changes a stream while it runs. */
export type RunningReport = Without<Exclude<StreamReport, { endedAtMs: number }> | RenditionReport>;

/** What other servers receive of it, in a row of `live_reports`: parts are only on the disk of the server that has them. */
export type StoredReport = Without<Exclude<StreamReport | RenditionReport, { part: unknown } | { health: unknown }>>;

/** The state in such a row, and the facts about the stream that do not change. */
export type StoredState = TimelineState & { dvrSeconds: number; segmentTargetSeconds: number };

/** Throws a RangeError for a report that contradicts those before. */
export function applyReport(stream: Pick<LiveStream, "timeline" | "captions" | "health">, report: RunningReport): void {
  const { timeline } = stream;
  if ("part" in report) timeline.part(report.part);
  else if ("segment" in report) timeline.segment(report.segment);
  else if ("init" in report) timeline.init(report.init);
  else if ("gap" in report) timeline.gap(report.gap);
  else if ("encoded" in report) timeline.encode(report.encoded);
  else if ("renditions" in report) timeline.list(report.renditions);
  else if ("service" in report) stream.captions.announce(report.service, report.language);
  else if ("caption" in report) stream.captions.add(report.caption);
  else if ("health" in report) stream.health = report.health;
  else if ("interrupted" in report) {
    stream.health = null;
    timeline.interrupted();
  } else timeline.resumed(report.resumedAtMs);
}

/** The file that a report names, relative to the folder of the tracks. */
export function fileOf(report: object & { segment?: SegmentEvent; init?: InitEvent }): string | null {
  if (report.segment) return `${report.segment.track}/${report.segment.name}`;
  return report.init ? `${report.init.track}/${INIT_NAME}` : null;
}
