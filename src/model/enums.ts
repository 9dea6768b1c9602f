/** The values of enumerated columns of the database, from which the schemas of the API and of events are derived. */

export const TENANT_STATUSES = ["active", "suspended"] as const;
/** A tenant that is being deleted is stored as suspended. */
export const TENANT_STATES = [...TENANT_STATUSES, "deleting"] as const;
export const PLANS = ["free", "starter", "pro", "enterprise"] as const;
export type PlanName = (typeof PLANS)[number];
export const PLAYBACK_POLICIES = ["public", "signed"] as const;

/** What a user may do: src/platform/http/roles.ts. */
export const ROLES = ["admin", "editor", "viewer"] as const;
export type Role = (typeof ROLES)[number];
/** What users are notified of: src/features/notifications. */
export const NOTIFICATION_KINDS = ["encode_failed", "live_signal_lost", "quota", "webhook_disabled"] as const;
export type NotificationKind = (typeof NOTIFICATION_KINDS)[number];
export const THEMES = ["light", "dark"] as const;

/** The source of an asset. */
export const INPUT_STATUSES = ["pending", "uploaded", "failed"] as const;
/** The media of an asset. */
export const PLAYBACK_STATUSES = ["draft", "processing", "ready", "errored"] as const;
export const ASSET_PROVIDERS = ["managed", "external_serve"] as const;

export const UPLOAD_STATUSES = ["pending", "completed", "failed", "aborted", "expired"] as const;
export const JOB_STATUSES = ["queued", "running", "completed", "failed", "canceled"] as const;
export const ATTEMPT_OUTCOMES = ["completed", "failed", "expired", "released", "canceled"] as const;

/** The parts of a job that workers encode independently; src/protocol/task.ts describes each. */
export const TASK_KINDS = ["plan", "chunk", "audio", "images", "whole"] as const;
/** Those of the database: a clip and a join are always all of their job, which a worker knows as the job. */
export const ALL_TASK_KINDS = [...TASK_KINDS, "clip", "join"] as const;
/** What is served first; src/features/transcoding/service-classes.ts describes each. */
export const SERVICE_CLASSES = ["requested", "first", "ahead", "abandoned", "normal"] as const;
/** `waiting`: for other tasks of the same attempt. */
export const TASK_STATUSES = ["waiting", "queued", "running", "completed", "failed", "canceled"] as const;

/** Imports from other platforms, as stored. */
export const IMPORT_RUN_STATUSES = ["running", "completed", "failed"] as const;
/** `interrupted`: the command has not reported for a minute. */
export const IMPORT_RUN_STATES = [...IMPORT_RUN_STATUSES, "interrupted"] as const;

export const BATCH_STATUSES = ["open", "committed", "canceled", "expired"] as const;
export const BATCH_UPLOAD_STATUSES = ["pending", "completed", "aborted"] as const;
export const BATCH_UPLOAD_MODES = ["put", "multipart", "proxy"] as const;

export const SUBTITLE_SOURCES = ["upload", "translation", "auto"] as const;
/** `caption` is also for people who cannot hear, `description` for people who cannot see, `forced` for what no viewer understands. */
export const SUBTITLE_ROLES = ["subtitle", "caption", "description", "forced"] as const;
export const TEXT_TRACK_STATUSES = ["pending", "processing", "ready", "failed"] as const;

export const ORDER_STATUSES = ["creating", "pending", "paid", "expired"] as const;
export const DISABLED_REASONS = ["gone", "failing"] as const;

/** Payment providers, in the order of the docs; src/platform/outbound/payments/configured.ts opens each. */
export const PAYMENT_KINDS = ["stripe", "paypal", "simulated"] as const;
export type PaymentKind = (typeof PAYMENT_KINDS)[number];

/** Kinds of object storage, in the order of the docs; src/platform/config/stores.ts has the driver of each. */
export const STORE_KINDS = ["local", "s3"] as const;
export type StoreKind = (typeof STORE_KINDS)[number];

export const CAPTION_JOB_STATUSES = ["queued", "running", "completed", "failed"] as const;
export const CAPTION_PART_STATUSES = ["waiting", "queued", "running", "completed"] as const;
export const CAPTION_TRANSLATION_STATUSES = ["pending", "ready", "failed", "skipped"] as const;
export type CaptionTranslationStatus = (typeof CAPTION_TRANSLATION_STATUSES)[number];
export const AUDIO_TRACK_STATUSES = ["processing", "ready", "failed"] as const;

export const WEBHOOK_DELIVERY_STATUSES = ["pending", "delivered", "failed", "skipped"] as const;
/** Forms of webhook deliveries: our own, and that of Mux. */
export const WEBHOOK_FORMATS = ["svc", "mux"] as const;
