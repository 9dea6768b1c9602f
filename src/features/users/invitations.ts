import { and, asc, count, eq, gt, isNull, sql } from "drizzle-orm";
import * as v from "valibot";
import type { App } from "#app.ts";
import { HttpError, iso, notFound, randomName, sha256 } from "#lib/base";
import { type Caller, ownedBy } from "#platform/http/caller.ts";
import { byId, page } from "#platform/http/paging.ts";
import { RecordIdInPath } from "#platform/http/parameters.ts";
import { route } from "#platform/http/route.ts";
import { Name } from "#platform/http/schemas.ts";
import { deleteInSlices } from "#platform/scheduled-tasks/delete-in-slices.ts";
import { describedAs } from "#protocol/fields.ts";
import { CodeField } from "#protocol/record-fields.ts";
import type { Db } from "#storage/db/open.ts";
import { type InvitationRow, invitations, tenants, users } from "#storage/db/schema.ts";
import { insertUser } from "../credentials/devices/insert-user.ts";
import { hashPassword } from "../credentials/devices/passwords.ts";
import { begin, beginning } from "../credentials/sessions/begin.ts";
import { SessionBody } from "../credentials/sessions/schema.ts";
import { insertUserSession } from "../credentials/sessions/sign-in.ts";
import { enqueueMail } from "../mail/outbox.ts";
import { invitationMail } from "../mail/texts.ts";
import { requireTenant } from "../tenants/queries.ts";
import { requireFreeEmail } from "./queries.ts";
import { Acceptance, Invitation, InvitationWrite, Invited, NewInvitation, toInvitation, UserQuery } from "./schema.ts";

const HOUR_MS = 3_600_000;
const LIVES_MS = 72 * HOUR_MS;
/** So long the address of an ended one says that it has ended. */
const KEPT_MS = 30 * 24 * HOUR_MS;
/** Open invitations of one tenant. */
const MAX_OPEN = 500;
const CODE_LENGTH = 32;

const path = "/api/v1/users/invitations";
const shared = { tag: "Users", forAdmins: true, errors: { 403: ["forbidden_role"] } } as const;
const accepted = { tag: "Users", credential: "none", path: "/api/v1/invitations/:code" } as const;
const Code = v.object({ code: describedAs(CodeField, Name(100)) });

const open = (app: App) => and(isNull(invitations.endedAt), gt(invitations.expiresAt, app.clock.now()));

/** The invitation of a code, and its tenant. Throws 404 for an unknown one and 410 for one that has ended. */
async function requireOpen(db: Db, app: App, code: string): Promise<{ row: InvitationRow; tenantName: string }> {
  const found = await db
    .select()
    .from(invitations)
    .innerJoin(tenants, eq(tenants.id, invitations.tenantId))
    .where(eq(invitations.codeHash, sha256(code)))
    .get();
  if (!found) return notFound("invitation");
  const { invitations: row, tenants: tenant } = found;
  if (row.endedAt !== null || row.expiresAt <= app.clock.now() || tenant.status !== "active")
    throw new HttpError(
      410,
      "invitation_ended",
      "This invitation was used or revoked, or has expired; ask for a new one.",
    );
  return { row, tenantName: tenant.name };
}

/** The language of the console of the person who invites. */
async function languageOf(tx: Db, caller: Caller): Promise<string | null> {
  const userId = caller.kind === "key" ? caller.userId : undefined;
  if (userId === undefined) return null;
  return (
    (await tx.select({ language: users.language }).from(users).where(eq(users.id, userId)).get())?.language ?? null
  );
}

async function requireFewerThanMax(tx: Db, app: App, tenantId: number): Promise<void> {
  const ofTenant = and(eq(invitations.tenantId, tenantId), open(app));
  const { total = 0 } = (await tx.select({ total: count() }).from(invitations).where(ofTenant).get()) ?? {};
  if (total >= MAX_OPEN)
    throw new HttpError(422, "invitation_limit_reached", `A tenant has at most ${MAX_OPEN} open invitations.`);
}

export const invitationRoutes = [
  route({
    ...shared,
    method: "POST",
    path,
    audited: true,
    operationId: "createInvitation",
    summary: "Invite a person; a new invitation to the same address replaces the one before it",
    body: InvitationWrite,
    idempotent: { secretFields: ["url"] },
    responses: { 201: NewInvitation },
    errors: { ...shared.errors, 404: ["not_found"], 422: ["invitation_limit_reached"] },
    async handle({ app, caller, body, commit }) {
      const code = randomName(CODE_LENGTH);
      const url = `${app.baseUrl()}/console/invitation/${code}`;
      return commit(async (tx) => {
        const tenant = await requireTenant(tx, caller, body.tenant_id);
        const tenantId = tenant.id;
        await requireFreeEmail(tx, body.email);
        const now = app.clock.now();
        const same = and(eq(invitations.tenantId, tenantId), eq(invitations.emailAddress, body.email), open(app));
        await tx.update(invitations).set({ endedAt: now }).where(same);
        await requireFewerThanMax(tx, app, tenantId);
        const expiresAt = now + LIVES_MS;
        const content = invitationMail(await languageOf(tx, caller), { tenant: tenant.name, url });
        const mail = { kind: "invitation", recipient: body.email, tenantId } as const;
        await enqueueMail(tx, app, { ...mail, content, expiresAt });
        const row = await tx
          .insert(invitations)
          .values({
            tenantId,
            emailAddress: body.email,
            role: body.role,
            codeHash: sha256(code),
            expiresAt,
            createdAt: now,
          })
          .returning()
          .get();
        return { ...toInvitation(row), url };
      });
    },
  }),
  route({
    ...shared,
    method: "GET",
    path,
    operationId: "listInvitations",
    summary: "List the invitations that can be accepted",
    query: UserQuery,
    responses: { 200: v.array(Invitation) },
    handle(context) {
      const { app, caller, query } = context;
      const named = query.tenant_id === undefined ? undefined : eq(invitations.tenantId, query.tenant_id);
      const batches = byId(query.cursor, (after, limit) =>
        app.db
          .select()
          .from(invitations)
          .where(
            and(
              ownedBy(caller, invitations.tenantId),
              open(app),
              named,
              after === undefined ? undefined : gt(invitations.id, after),
            ),
          )
          .orderBy(asc(invitations.id))
          .limit(limit + 1)
          .all(),
      );
      return page(context, { batches, toWire: toInvitation });
    },
  }),
  route({
    ...shared,
    method: "DELETE",
    path: `${path}/:id`,
    audited: true,
    operationId: "revokeInvitation",
    summary: "Revoke an invitation",
    params: v.object({ id: RecordIdInPath }),
    responses: { 204: null },
    handle: ({ app, caller, params }) =>
      app.write(async (tx) => {
        const one = and(eq(invitations.id, params.id), ownedBy(caller, invitations.tenantId), open(app));
        const revoked = await tx.update(invitations).set({ endedAt: app.clock.now() }).where(one).returning().get();
        if (!revoked) notFound("invitation");
      }),
  }),
  route({
    ...accepted,
    method: "GET",
    operationId: "getInvitation",
    summary: "Get the invitation of a code",
    params: Code,
    responses: { 200: Invited },
    errors: { 410: ["invitation_ended"] },
    async handle({ app, params }) {
      const { row, tenantName } = await requireOpen(app.db, app, params.code);
      return { email: row.emailAddress, role: row.role, tenant_name: tenantName, expires_at: iso(row.expiresAt) };
    },
  }),
  route({
    ...beginning,
    ...accepted,
    operationId: "acceptInvitation",
    summary: "Accept an invitation: create the user, and sign in",
    params: Code,
    body: Acceptance,
    responses: { 201: SessionBody },
    errors: { ...beginning.errors, 410: ["invitation_ended"], 422: ["user_limit_reached"] },
    handle: (context) =>
      begin(context, async (client) => {
        const { app, params, body } = context;
        await requireOpen(app.db, app, params.code);
        const passwordHash = await hashPassword(body.password);
        return app.write(async (tx) => {
          const { row } = await requireOpen(tx, app, params.code);
          await requireFreeEmail(tx, row.emailAddress);
          const now = app.clock.now();
          await tx.update(invitations).set({ endedAt: now }).where(eq(invitations.id, row.id));
          const { tenantId, emailAddress, role } = row;
          const user = await insertUser(tx, { tenantId, emailAddress, passwordHash, role, name: body.name }, now);
          return insertUserSession(tx, app, user, client);
        });
      }),
  }),
];

/** Deletes invitations that ended long ago. */
export const pruneInvitations = (app: App): Promise<number> =>
  deleteInSlices(app, { table: "invitations", where: sql`expires_at <= ${app.clock.now() - KEPT_MS}` });
