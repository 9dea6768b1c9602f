import type { NotificationKind } from "#model/enums.ts";
import type { NotificationData } from "#storage/db/schema.ts";
import type { Content } from "../mail/outbox.ts";

type Notified = { kind: NotificationKind; data: NotificationData; baseUrl: string };
type Text = { subject: string; text: string; page: string };

/** A subject is one line. */
const line = (value: unknown) =>
  String(value ?? "")
    .replaceAll(/[\r\n\t]+/g, " ")
    .slice(0, 200);

const EN: Record<NotificationKind, (data: NotificationData) => Text> = {
  encode_failed: ({ title, detail, asset_id }) => ({
    subject: `Encoding failed: ${line(title)}`,
    text: `The video “${line(title)}” could not be encoded: ${line(detail)}`,
    page: `assets/${asset_id}`,
  }),
  live_signal_lost: ({ channel, channel_id }) => ({
    subject: `Live signal lost: ${line(channel)}`,
    text: `The channel “${line(channel)}” no longer receives a signal. The stream continues if the encoder reconnects in time.`,
    page: `live/${channel_id}`,
  }),
  quota: ({ resource, percent }) => ({
    subject: `${percent} % of the ${resource === "storage" ? "storage" : "transcoding minutes"} used`,
    text: `${percent} % of what the plan includes is used: ${resource === "storage" ? "storage" : "transcoding minutes of this month"}. At 100 % new ${resource === "storage" ? "uploads are" : "videos are"} refused.`,
    page: "usage",
  }),
  webhook_disabled: ({ url, endpoint_id }) => ({
    subject: `Webhook endpoint disabled: ${line(url)}`,
    text: `The webhook endpoint ${line(url)} was disabled, because its deliveries failed. No further events are sent there.`,
    page: `webhooks/${endpoint_id}`,
  }),
};

const DE: typeof EN = {
  encode_failed: ({ title, detail, asset_id }) => ({
    subject: `Kodierung fehlgeschlagen: ${line(title)}`,
    text: `Das Video „${line(title)}“ konnte nicht kodiert werden: ${line(detail)}`,
    page: `assets/${asset_id}`,
  }),
  live_signal_lost: ({ channel, channel_id }) => ({
    subject: `Live-Signal verloren: ${line(channel)}`,
    text: `Der Kanal „${line(channel)}“ erhält kein Signal mehr. Der Stream geht weiter, wenn sich der Encoder rechtzeitig wieder verbindet.`,
    page: `live/${channel_id}`,
  }),
  quota: ({ resource, percent }) => ({
    subject: `${percent} % ${resource === "storage" ? "des Speichers" : "der Kodierminuten"} verbraucht`,
    text: `${percent} % dessen, was der Tarif enthält, sind verbraucht: ${resource === "storage" ? "Speicher" : "Kodierminuten dieses Monats"}. Bei 100 % werden neue ${resource === "storage" ? "Uploads" : "Videos"} abgelehnt.`,
    page: "usage",
  }),
  webhook_disabled: ({ url, endpoint_id }) => ({
    subject: `Webhook-Endpunkt abgeschaltet: ${line(url)}`,
    text: `Der Webhook-Endpunkt ${line(url)} wurde abgeschaltet, weil Zustellungen fehlschlugen. Er erhält keine Ereignisse mehr.`,
    page: `webhooks/${endpoint_id}`,
  }),
};

/** The mail of a notification, in the language of the user. */
export function notificationMail(language: string | null, { kind, data, baseUrl }: Notified): Content {
  const isGerman = language === "de";
  const { subject, text, page } = (isGerman ? DE : EN)[kind](data);
  const settings = `${baseUrl}/console/account`;
  const end = isGerman
    ? `Welche Benachrichtigungen Sie erhalten, legen Sie in Ihrem Konto fest:\n${settings}`
    : `Choose which notifications you receive in your account:\n${settings}`;
  return { subject, text: `${text}\n\n${baseUrl}/console/${page}\n\n${end}\n` };
}
