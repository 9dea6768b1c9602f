import * as v from "valibot";
import type { App } from "#app.ts";
import { NOTIFICATION_KINDS, type NotificationKind } from "#model/enums.ts";
import { toRecord } from "#platform/http/records.ts";
import { Id, oneOf, Paging } from "#platform/http/schemas.ts";
import { isMailConfigured } from "#platform/outbound/mail/smtp.ts";
import { CreatedAt, RecordId } from "#protocol/record-fields.ts";
import type { NotificationRow, UserRow } from "#storage/db/schema.ts";
import { kindsFor, settingOf } from "./kinds.ts";

const Kind = oneOf(NOTIFICATION_KINDS);

export const NotificationQuery = v.object({
  ...Paging,
  unread: v.optional(v.pipe(v.picklist(["true", "false"]), v.description("`true`: only those not marked as read"))),
});

export const Notification = v.pipe(
  v.object({
    id: RecordId,
    kind: v.pipe(Kind, v.description("What happened")),
    data: v.pipe(
      v.record(v.string(), v.nullable(v.union([v.string(), v.number()]))),
      v.description(
        "`encode_failed`: `asset_id`, `title`, `code`, `detail`. `live_signal_lost`: `channel_id`, `channel`. `quota`: `resource` (`storage` or `minutes`), `percent` (80 or 100). `webhook_disabled`: `endpoint_id`, `url`, `reason`",
      ),
    ),
    is_read: v.pipe(v.boolean(), v.description("Whether the user has marked it as read")),
    created_at: CreatedAt,
  }),
  v.title("Notification"),
);
export type Listed = NotificationRow & { isRead: boolean };
export const toNotification = (row: Listed) => toRecord(Notification, row);

export const Unread = v.object({ count: v.pipe(v.number(), v.description("At most 200, as many as are kept")) });
export const MarkRead = v.object({
  ids: v.optional(
    v.pipe(v.array(Id), v.maxLength(200, "must have at most 200 items"), v.description("Without it: all of them")),
  ),
});

const isOn = (where: string) => v.pipe(v.boolean("must be a boolean"), v.description(where));
const places = { console: isOn("In the console"), mail: isOn("By mail") };
const Setting = v.object(places, "must be an object");
const SettingPatch = v.object(
  { console: v.optional(places.console), mail: v.optional(places.mail) },
  "must be an object",
);
const ABOUT = {
  encode_failed: "A video could not be encoded",
  live_signal_lost: "The publisher of a stream lost its connection",
  quota: "80 % or 100 % of the plan's storage or transcoding minutes are used",
  webhook_disabled: "A webhook endpoint was disabled, because its deliveries failed",
} satisfies Record<NotificationKind, string>;

function forKinds<T extends v.GenericSchema>(of: T) {
  const one = (kind: NotificationKind) => v.optional(v.pipe(of, v.description(ABOUT[kind])));
  return Object.fromEntries(NOTIFICATION_KINDS.map((kind) => [kind, one(kind)])) as Record<
    NotificationKind,
    ReturnType<typeof one>
  >;
}

export const NotificationSettingsPatch = v.object(forKinds(SettingPatch));
export const NotificationSettings = v.pipe(
  v.object({
    mail_available: v.pipe(v.boolean(), v.description("Whether the server can send mail")),
    kinds: v.pipe(
      v.object(forKinds(Setting)),
      v.description("The kinds that the user's role may know of, and where each is reported"),
    ),
  }),
  v.title("NotificationSettings"),
);
export const toSettings = (app: App, user: UserRow): v.InferInput<typeof NotificationSettings> => ({
  mail_available: isMailConfigured(app.config),
  kinds: Object.fromEntries(kindsFor(user.role).map((kind) => [kind, settingOf(user, kind)])),
});
