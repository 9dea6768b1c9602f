import * as v from "valibot";
import type { App } from "#app.ts";
import { iso } from "#lib/base";
import { Time } from "#platform/http/schemas.ts";
import { EventField, ExportedAt, StartedAt, StartField, TenantIdField } from "#protocol/record-fields.ts";
import { startOfHour } from "./deltas.ts";
import { DEVICES } from "./device.ts";
import { ErrorCount, OccurredAt, PositionSeconds, StartupMs, WatchedSeconds } from "./record-fields.ts";
import { subjectIds } from "./subject.ts";
import { eventsOf, hoursOf, sessionsOf, type Viewer, type ViewerEvent, type ViewerSession } from "./viewer-rows.ts";

const Subject = {
  asset_id: v.pipe(v.nullable(v.number()), v.description("Null for a live channel")),
  channel_id: v.pipe(v.nullable(v.number()), v.description("Null for an asset")),
};

export const ViewerExport = v.pipe(
  v.object({
    tenant_id: TenantIdField,
    exported_at: ExportedAt,
    sessions: v.pipe(
      v.array(
        v.object({
          ...Subject,
          session: v.pipe(v.string(), v.description("A hash of the id that the player chose")),
          device: v.pipe(v.nullable(v.picklist(DEVICES)), v.description("Class of the device")),
          country: v.pipe(v.nullable(v.string()), v.description("Two letters; null: unknown")),
          referrer: v.pipe(v.nullable(v.string()), v.description("Host of the page with the player")),
          network: v.pipe(
            v.nullable(v.string()),
            v.description("Network of the address, with `VODBOX_ANALYTICS_IP=truncate`; otherwise null"),
          ),
          started_at: StartedAt,
          last_at: v.pipe(Time, v.description("Time of the last event")),
          played_at: v.pipe(v.nullable(Time), v.description("When playback began; null: never")),
          watched_seconds: WatchedSeconds,
          reached: v.pipe(v.number(), v.description("The furthest position, as a share of the duration: 0 to 1")),
          is_complete: v.pipe(v.boolean(), v.description("Whether 90 % of the video were reached")),
          error_count: ErrorCount,
          startup_ms: v.nullable(StartupMs),
          events: v.pipe(
            v.array(
              v.object({
                event: EventField,
                position_seconds: v.nullable(PositionSeconds),
                watched_seconds: WatchedSeconds,
                occurred_at: OccurredAt,
                received_at: v.pipe(Time, v.description("By the clock of the server")),
              }),
            ),
            v.description("Events"),
          ),
        }),
      ),
      v.description("Those of the last `VODBOX_PLAYBACK_EVENT_DAYS`"),
    ),
    hours: v.pipe(
      v.array(v.object({ ...Subject, start: StartField })),
      v.description("The hours in which the viewer began to watch something, of the last 400 days"),
    ),
  }),
  v.title("ViewerExport"),
);

const toSession = (row: ViewerSession) => ({
  ...subjectIds(row.asset_id),
  session: row.session,
  device: row.device,
  country: row.country || null,
  referrer: row.referrer || null,
  network: row.network,
  started_at: iso(row.started_at),
  last_at: iso(row.last_at),
  played_at: row.played_at === null ? null : iso(row.played_at),
  watched_seconds: row.watched_ms / 1000,
  reached: row.reached / 100,
  is_complete: row.completed === 1,
  error_count: row.errors,
  startup_ms: row.startup_ms,
});

const toEvent = (row: ViewerEvent) => ({
  event: row.event,
  position_seconds: row.position_ms === -1 ? null : row.position_ms / 1000,
  watched_seconds: row.watched_ms / 1000,
  occurred_at: iso(row.at),
  received_at: iso(row.received_at),
});

/** Everything that is stored of a viewer, as the text of a `ViewerExport`. */
export async function* exportViewer(app: App, viewer: Viewer): AsyncGenerator<string> {
  const head = { tenant_id: viewer.tenantId, exported_at: iso(app.clock.now()) };
  yield `${JSON.stringify(head).slice(0, -1)},"sessions":[`;
  let separator = "";
  for await (const sessions of sessionsOf(app, viewer)) {
    for (const session of sessions) {
      yield `${separator}${JSON.stringify(toSession(session)).slice(0, -1)},"events":[`;
      separator = ",";
      let isFirst = true;
      for await (const events of eventsOf(app, session)) {
        yield `${isFirst ? "" : ","}${events.map((row) => JSON.stringify(toEvent(row))).join()}`;
        isFirst = false;
      }
      yield "]}";
    }
  }
  yield '],"hours":[';
  separator = "";
  for await (const hours of hoursOf(app, viewer)) {
    const own = hours.filter(({ asset_id }) => asset_id !== 0);
    if (own.length === 0) continue;
    const rows = own.map(({ asset_id, hour }) => ({ ...subjectIds(asset_id), start: iso(startOfHour(hour)) }));
    yield separator + rows.map((row) => JSON.stringify(row)).join();
    separator = ",";
  }
  yield "]}";
}
