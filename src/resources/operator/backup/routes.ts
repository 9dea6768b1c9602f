import * as v from "valibot";
import { endHold, HOLD_MS, renewHold, takeHold } from "../../../http/removal-hold.ts";
import { Reply, route } from "../../../http/route.ts";
import { PathId } from "../../../http/schemas.ts";
import { notFound } from "../../../lib/errors.ts";

const admin = { credential: "admin", tag: "Operator" } as const;
const Hold = v.object({ id: v.number(), expires_at: v.string(), expires_in: v.number() });
const toHold = ({ id, expiresAt }: { id: number; expiresAt: number }) => ({
  id,
  expires_at: new Date(expiresAt).toISOString(),
  expires_in: HOLD_MS / 1000,
});
const params = v.object({ id: PathId });

export const backupRoutes = [
  route({
    ...admin,
    method: "POST",
    path: "/api/v1/admin/removal_holds",
    summary: "Hold deletions from storage while a backup copies objects",
    responses: { 201: Hold },
    handle: async ({ app }) => toHold(await takeHold(app)),
  }),
  route({
    ...admin,
    method: "PUT",
    path: "/api/v1/admin/removal_holds/:id",
    // Twice a minute, for as long as a backup takes.
    audited: false,
    summary: "Renew a deletion hold",
    params,
    responses: { 200: Hold },
    errors: { 404: ["not_found"] },
    handle: async ({ app, params: { id } }) => toHold((await renewHold(app, id)) ?? notFound("hold")),
  }),
  route({
    ...admin,
    method: "DELETE",
    path: "/api/v1/admin/removal_holds/:id",
    summary: "End a deletion hold",
    params,
    responses: { 204: null },
    async handle({ app, params: { id } }) {
      await endHold(app, id);
      return new Reply(204, undefined);
    },
  }),
];
