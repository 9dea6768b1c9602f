import { and, desc, eq, inArray, lt, type SQL, sql } from "drizzle-orm";
import * as v from "valibot";
import { NOTIFICATION_KINDS } from "#model/enums.ts";
import { byId, page } from "#platform/http/paging.ts";
import { Reply, route } from "#platform/http/route.ts";
import type { Db } from "#storage/db/open.ts";
import { notificationReads, notifications, type UserRow, users } from "#storage/db/schema.ts";
import { me } from "../users/me.ts";
import { isReported, settingOf } from "./kinds.ts";
import {
  MarkRead,
  Notification,
  NotificationQuery,
  NotificationSettings,
  NotificationSettingsPatch,
  toNotification,
  toSettings,
  Unread,
} from "./schema.ts";

const path = "/api/v1/me/notifications";
const shared = { tag: "Account", credential: "session", errors: { 404: ["not_found"] } } as const;
const CHANGE_ERRORS = { ...shared.errors, 403: ["cross_site", "csrf_token_required"] } as const;

/** Marked, or from before the user existed. */
const isRead = ({ id, createdAt }: UserRow): SQL<number> => sql<number>`(${notifications.createdAt} < ${createdAt}
  or exists (select 1 from ${notificationReads} where ${notificationReads.userId} = ${id}
    and ${notificationReads.notificationId} = ${notifications.id}))`;

/** What a user sees in the console: of the own tenant, by role and own choice. */
const shownTo = (user: UserRow): SQL | undefined =>
  and(
    eq(notifications.tenantId, user.tenantId),
    inArray(
      notifications.kind,
      NOTIFICATION_KINDS.filter((kind) => isReported(user, kind, "console")),
    ),
  );

const markRead = (tx: Db, user: UserRow, ids: number[] | undefined) =>
  tx.run(sql`
    insert or ignore into notification_reads (user_id, notification_id)
    select ${user.id}, ${notifications.id} from ${notifications}
    where ${and(shownTo(user), ids && inArray(notifications.id, ids))}`);

export const notificationRoutes = [
  route({
    ...shared,
    method: "GET",
    path,
    operationId: "listMyNotifications",
    summary: "List one's own notifications, newest first; the newest 200 of a tenant are kept",
    query: NotificationQuery,
    responses: { 200: v.array(Notification) },
    async handle(context) {
      const { app, caller, query } = context;
      const { user } = await me(app.db, caller);
      const isWanted = query.unread === "true" ? sql`not ${isRead(user)}` : undefined;
      const batches = byId(query.cursor, async (before, limit) => {
        const rows = await app.db
          .select({ row: notifications, isRead: isRead(user) })
          .from(notifications)
          .where(and(shownTo(user), isWanted, before === undefined ? undefined : lt(notifications.id, before)))
          .orderBy(desc(notifications.id))
          .limit(limit + 1)
          .all();
        return rows.map(({ row, ...read }) => ({ ...row, isRead: Boolean(read.isRead) }));
      });
      return page(context, { batches, toWire: toNotification });
    },
  }),
  route({
    ...shared,
    method: "GET",
    path: `${path}/unread`,
    operationId: "countMyUnreadNotifications",
    summary: "Count one's own notifications that are not marked as read",
    responses: { 200: Unread },
    async handle({ app, caller }) {
      const { user } = await me(app.db, caller);
      const unread = await app.db
        .select({ count: sql<number>`count(*)` })
        .from(notifications)
        .where(and(shownTo(user), sql`not ${isRead(user)}`))
        .get();
      return { count: unread?.count ?? 0 };
    },
  }),
  route({
    ...shared,
    method: "POST",
    path: `${path}/read`,
    // Reading changes nothing that others see.
    audited: false,
    operationId: "markMyNotificationsRead",
    summary: "Mark one's own notifications as read",
    body: MarkRead,
    responses: { 204: null },
    errors: CHANGE_ERRORS,
    handle: ({ app, caller, body }) =>
      app.write(async (tx) => {
        await markRead(tx, (await me(tx, caller)).user, body?.ids);
        return new Reply(204, undefined);
      }),
  }),
  route({
    ...shared,
    method: "GET",
    path: "/api/v1/me/notification_settings",
    operationId: "getMyNotificationSettings",
    summary: "Get which notifications the user receives, and where",
    responses: { 200: NotificationSettings },
    handle: async ({ app, caller }) => toSettings(app, (await me(app.db, caller)).user),
  }),
  route({
    ...shared,
    method: "PATCH",
    path: "/api/v1/me/notification_settings",
    audited: true,
    operationId: "updateMyNotificationSettings",
    summary: "Choose which notifications the user receives, in the console and by mail",
    body: NotificationSettingsPatch,
    responses: { 200: NotificationSettings },
    errors: CHANGE_ERRORS,
    handle: ({ app, caller, body }) =>
      app.write(async (tx) => {
        const { user } = await me(tx, caller);
        const changed = NOTIFICATION_KINDS.flatMap((kind) =>
          body[kind] === undefined ? [] : [[kind, { ...settingOf(user, kind), ...body[kind] }] as const],
        );
        const notificationSettings = { ...user.notificationSettings, ...Object.fromEntries(changed) };
        const set = { notificationSettings, updatedAt: app.clock.now() };
        return toSettings(app, await tx.update(users).set(set).where(eq(users.id, user.id)).returning().get());
      }),
  }),
];
