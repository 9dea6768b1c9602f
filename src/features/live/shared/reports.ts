import type { FromIngest, FromIngestOf } from "#live/ingest/messages.ts";
import type { TimelineState } from "#live/playlists/timeline-types.ts";
import type { RenditionReport } from "#live/renditions/messages.ts";
import { INIT_NAME } from "#media/arguments.ts";
import type { LiveStream } from "../registry.ts";

/** What the ingest process reports of a running stream. */
export type StreamReport = Exclude<Extract<FromIngest, { stream: string }>, FromIngestOf<"finished">>;
type Without<Report> = Report extends unknown ? Omit<Report, "stream"> : never;
/** One that changes a stream while it runs. */
export type RunningReport = Without<Exclude<StreamReport, FromIngestOf<"ended">> | RenditionReport>;

/** What other servers receive of it, in a row of `live_reports`: parts are only on the disk of the server that has them. */
export type StoredReport = Without<Exclude<StreamReport | RenditionReport, { type: "part" | "health" }>>;

/** The state in such a row, and the facts about the stream that do not change. */
export type StoredState = TimelineState & { dvrSeconds: number; segmentTargetSeconds: number };

/** Throws a RangeError for a report that contradicts those before. */
export function applyReport(stream: Pick<LiveStream, "timeline" | "captions" | "health">, report: RunningReport): void {
  const { timeline } = stream;
  switch (report.type) {
    case "part":
      return timeline.part(report.part);
    case "segment":
      return timeline.segment(report.segment);
    case "init":
      return timeline.init(report.init);
    case "gap":
      return timeline.gap(report.gap);
    case "encoded":
      return timeline.encode(report.encoded);
    case "renditions":
      return timeline.list(report.renditions);
    case "service":
      return stream.captions.announce(report.service, report.language);
    case "caption":
      return stream.captions.add(report.caption);
    case "health":
      stream.health = report.health;
      return;
    case "interrupted":
      stream.health = null;
      return timeline.interrupted();
    case "resumed":
      return timeline.resumed(report.resumedAtMs);
    default:
      // Another server may have a newer version, with more types.
      report satisfies never;
  }
}

/** The file that a report names, relative to the folder of the tracks. */
export function fileOf(report: StoredReport): string | null {
  if (report.type === "segment") return `${report.segment.track}/${report.segment.name}`;
  return report.type === "init" ? `${report.init.track}/${INIT_NAME}` : null;
}
