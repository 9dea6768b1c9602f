/** Records of the API, from its OpenAPI document. */
import type { Item } from "../../clients/typescript/types.ts";

export type {
  ApiKey,
  Asset,
  AssetImages,
  Checkup,
  Collection,
  LiveChannel,
  PairingCode,
  Playback,
  Session,
  SigningKey,
  Subtitle,
  Tenant,
  Track,
  TranscodingJob as Job,
  UsageSummary,
  User,
  WebhookDelivery,
  WebhookEndpoint,
} from "../../../build/client/methods.ts";

export type AuditEntry = Item<"listAuditEntries">;

export const STATUSES = ["draft", "processing", "ready", "errored"] as const;
export const JOB_STATUSES = ["queued", "running", "completed", "failed", "canceled"] as const;
