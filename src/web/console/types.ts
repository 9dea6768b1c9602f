/** Records of the API, from its OpenAPI document. */
import type { TenantUser } from "#build/client/methods.ts";
import type { Item } from "#clients/typescript/types.ts";

export type {
  ApiKey,
  Asset,
  AssetImages,
  AudioTrack,
  Checkup,
  Collection,
  ImportRun,
  Invitation,
  LiveChannel,
  NewInvitation,
  NewTotp,
  Notification,
  NotificationSettings,
  PairingCode,
  Playback,
  Session,
  Share,
  SigningKey,
  Subtitle,
  Tenant,
  TenantUser,
  Track,
  TranscodingJob as Job,
  UsageSummary,
  User,
  WebhookDelivery,
  WebhookEndpoint,
} from "#build/client/methods.ts";

export type Role = TenantUser["role"];
export type AuditEntry = Item<"listAuditEntries">;
