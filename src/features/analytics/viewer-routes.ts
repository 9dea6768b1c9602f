import * as v from "valibot";
import type { App } from "#app.ts";
import { notFound } from "#lib/base";
import type { Caller } from "#platform/http/caller.ts";
import { type Route, route } from "#platform/http/route.ts";
import { QueryId, Text } from "#platform/http/schemas.ts";
import { streamedJson } from "#platform/http/stream.ts";
import { TenantIdField } from "#protocol/record-fields.ts";
import { requireTenant } from "../tenants/queries.ts";
import { eraseViewer } from "./viewer-erasure.ts";
import { exportViewer, ViewerExport } from "./viewer-export.ts";
import { isViewerStored, type Viewer } from "./viewer-rows.ts";
import { viewerHash, viewsOf } from "./views.ts";

const common = {
  path: "/api/v1/analytics/viewers/:viewer_id",
  tag: "Analytics",
  scope: "assets:write",
  params: v.object({
    viewer_id: v.pipe(Text(128), v.description("As players report it: `viewer_id` of playback events")),
  }),
  query: v.object({ tenant_id: v.optional(v.pipe(QueryId, v.description("Required with the admin token"))) }),
} as const;

/** Throws 404 where nothing is stored of the viewer. */
async function requireViewer(app: App, caller: Caller, tenantId: number | undefined, id: string): Promise<Viewer> {
  const tenant = await requireTenant(app.db, caller, tenantId);
  // Includes events that this process has just accepted.
  await viewsOf(app).flush();
  const viewer = { tenantId: tenant.id, hash: viewerHash(app, tenant.id, id) };
  return (await isViewerStored(app, viewer)) ? viewer : notFound("viewer");
}

/** Access to, and erasure of, what is stored of one viewer. */
export const viewerRoutes: Route[] = [
  route({
    ...common,
    method: "GET",
    expensive: "export",
    operationId: "exportViewer",
    summary: "Export everything that is stored of a viewer",
    responses: { 200: ViewerExport },
    async handle(context) {
      const { app, caller, params, query } = context;
      const viewer = await requireViewer(app, caller, query.tenant_id, params.viewer_id);
      return streamedJson(context, exportViewer(app, viewer), {
        "content-disposition": 'attachment; filename="viewer.json"',
      });
    },
  }),
  route({
    ...common,
    method: "DELETE",
    expensive: "bulk",
    operationId: "eraseViewer",
    summary: "Erase what is stored of a viewer; sums, which name no viewer, stay",
    responses: {
      200: v.object({
        tenant_id: TenantIdField,
        session_count: v.pipe(v.number(), v.description("Sessions that were erased")),
        event_count: v.pipe(v.number(), v.description("Their events")),
      }),
    },
    async handle({ app, caller, params, query, signal }) {
      const viewer = await requireViewer(app, caller, query.tenant_id, params.viewer_id);
      const { tenantId: tenant_id } = viewer;
      // The first write of a call has its entry in the audit log: it precedes the erasure, which may be interrupted.
      await app.write(async () => ({ tenant_id }));
      const { sessions, events } = await eraseViewer(app, viewer, signal);
      return { tenant_id, session_count: sessions, event_count: events };
    },
  }),
];
