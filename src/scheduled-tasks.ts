import { eq } from "drizzle-orm";
import type { App } from "#app.ts";
import { cmcdSessions } from "#features/analytics/cmcd/sessions.ts";
import { pruneViews } from "#features/analytics/prune.ts";
import { viewsOf } from "#features/analytics/views.ts";
import { collectAllGarbage } from "#features/assets/collect-garbage.ts";
import { expireAssets } from "#features/assets/expire.ts";
import { finishStaleImports } from "#features/assets/import/recover.ts";
import { pruneReplacedMedia } from "#features/assets/replaced-media.ts";
import { mergeTexts } from "#features/assets/text-index.ts";
import { expireBatches, sweepBatches } from "#features/batch-uploads/close.ts";
import { pruneSessions } from "#features/credentials/sessions/prune.ts";
import { pruneWatermarks } from "#features/encoding-profiles/watermark.ts";
import { liveMeter } from "#features/live/minutes/live-meter.ts";
import { pruneLiveMinutes } from "#features/live/minutes/prune.ts";
import { pruneReports } from "#features/live/shared/prune-reports.ts";
import { abandonedStreams } from "#features/live/streams/abandoned.ts";
import { sendMails } from "#features/mail/outbox.ts";
import { notifyOfQuotas } from "#features/notifications/quotas.ts";
import { continueMigration } from "#features/operations/migration/run.ts";
import { emptyTrash } from "#features/operations/migration/trash.ts";
import { deleteOldAnalytics } from "#features/operations/system/delete-old-analytics.ts";
import { deleteOldSources } from "#features/operations/system/delete-old-sources.ts";
import { detectAnomalies } from "#features/operations/system/detect-anomalies.ts";
import { historyOf, SAMPLE_SECONDS } from "#features/operations/system/history.ts";
import { logStreamOf } from "#features/operations/system/log-stream.ts";
import { announceServer } from "#features/operations/system/servers.ts";
import type { Egress } from "#features/playback/egress.ts";
import { indexTexts } from "#features/search/index-texts.ts";
import { pruneShares } from "#features/shares/prune.ts";
import { translateCaptions } from "#features/subtitles/translate-generated.ts";
import { deleteTenants } from "#features/tenants/deletion.ts";
import { billDatabaseBytes } from "#features/tenants/usage.ts";
import { hasQueued } from "#features/transcoding/claim.ts";
import { recoverLeases } from "#features/transcoding/recover.ts";
import { ALL_REQUIREMENTS } from "#features/transcoding/requirements.ts";
import { sumSources } from "#features/transcoding/source-sums.ts";
import { sweepAttempts } from "#features/transcoding/sweep.ts";
import { expireUploads } from "#features/uploads/expire.ts";
import { startFetches } from "#features/uploads/fetches.ts";
import { sweepAppends, sweepParts } from "#features/uploads/sweep-parts.ts";
import { pruneInvitations } from "#features/users/invitations.ts";
import { prunePasswordResets, writeResetMail } from "#features/users/password-resets.ts";
import { deliverWebhooks } from "#features/webhooks/deliver-webhooks.ts";
import { pruneDeliveries } from "#features/webhooks/prune.ts";
import { pruneAudit } from "#platform/http/audit.ts";
import type { Authenticator } from "#platform/http/auth.ts";
import { pruneResponses } from "#platform/http/idempotency.ts";
import type { ScheduledTask } from "#platform/scheduled-tasks/scheduler.ts";
import type { Lane } from "#protocol/worker.ts";
import { apiKeys } from "#storage/db/schema.ts";

/** All background work of `serve`. */
export const allScheduledTasks = (
  app: App,
  { authenticator, egress }: { authenticator: Authenticator; egress: Egress },
): ScheduledTask[] => [
  { name: "tell-of-server", schedule: "*/10 * * * * *", runOnShutdown: true, run: () => announceServer(app) },
  { name: "recover-leases", schedule: "* * * * * *", run: () => recoverLeases(app) },
  {
    // A job whose backoff has elapsed emits no signal by itself.
    name: "wake-workers",
    schedule: "* * * * * *",
    run: async () => {
      const capabilities = { ...ALL_REQUIREMENTS, captions: 0 };
      const isQueued = (lane: Lane) => hasQueued(app, { capabilities, lane });
      if ((await isQueued("main")) || (await isQueued("captions"))) app.signals.emit("job.queued");
    },
  },
  {
    name: "translate-captions",
    schedule: "*/2 * * * * *",
    run: () => translateCaptions(app),
    wakes: (wake) => app.signals.on("captions.recognized", wake),
  },
  { name: "fetch-sources", schedule: "* * * * * *", run: () => startFetches(app) },
  { name: "expire-uploads", schedule: "*/10 * * * * *", run: () => expireUploads(app) },
  { name: "expire-assets", schedule: "*/5 * * * * *", run: () => expireAssets(app) },
  { name: "expire-batches", schedule: "*/10 * * * * *", run: () => expireBatches(app) },
  { name: "finish-imports", schedule: "*/30 * * * * *", run: () => finishStaleImports(app) },
  { name: "index-texts", schedule: "* * * * * *", run: () => indexTexts(app) },
  { name: "merge-text-index", schedule: "*/5 * * * * *", run: () => mergeTexts(app) },
  { name: "sweep-batches", schedule: "50 * * * * *", run: () => sweepBatches(app) },
  { name: "sum-sources", schedule: "*/5 * * * * *", run: () => sumSources(app) },
  { name: "sweep-attempts", schedule: "20 * * * * *", run: () => sweepAttempts(app) },
  { name: "sweep-objects", schedule: "40 * * * * *", run: () => collectAllGarbage(app) },
  {
    name: "delete-tenants",
    schedule: "*/2 * * * * *",
    run: () => deleteTenants(app),
    wakes: (wake) => app.signals.on("tenant.deleting", wake),
  },
  { name: "migrate-storage", schedule: "*/2 * * * * *", run: () => continueMigration(app) },
  { name: "sweep-appends", schedule: "50 * * * * *", run: () => sweepAppends(app) },
  { name: "sweep-parts", schedule: "0 23 * * * *", run: () => sweepParts(app) },
  deliverWebhooks(app),
  { name: "prune-deliveries", schedule: "0 17 * * * *", run: () => pruneDeliveries(app) },
  { name: "count-egress", schedule: "*/5 * * * * *", runOnShutdown: true, run: () => egress.flush() },
  { name: "count-live", schedule: "*/5 * * * * *", runOnShutdown: true, run: () => liveMeter(app).flush() },
  {
    // Before the views are written.
    name: "report-cmcd",
    schedule: "*/2 * * * * *",
    runOnShutdown: true,
    run: () => cmcdSessions(app).report(app.stopping.aborted),
  },
  { name: "record-views", schedule: "* * * * * *", runOnShutdown: true, run: () => viewsOf(app).flush() },
  { name: "prune-views", schedule: "0 23 * * * *", run: () => pruneViews(app) },
  { name: "prune-live-minutes", schedule: "0 27 * * * *", run: () => pruneLiveMinutes(app) },
  { name: "delete-old-analytics", schedule: "0 29 */6 * * *", run: () => deleteOldAnalytics(app) },
  { name: "delete-old-sources", schedule: "0 11 * * * *", run: () => deleteOldSources(app) },
  // Players report every ten seconds, so the previous hour is complete by then.
  { name: "detect-anomalies", schedule: "0 5 * * * *", run: () => detectAnomalies(app) },
  {
    name: "record-key-use",
    schedule: "*/30 * * * * *",
    runOnShutdown: true,
    run: () => recordKeyUse(app, authenticator),
  },
  { name: "sample-figures", schedule: `*/${SAMPLE_SECONDS} * * * * *`, run: () => historyOf(app).sample() },
  { name: "share-log", schedule: "* * * * * *", run: () => logStreamOf(app).share() },
  { name: "empty-trash", schedule: "0 41 * * * *", run: () => emptyTrash(app) },
  { name: "prune-sessions", schedule: "0 43 * * * *", run: () => pruneSessions(app) },
  { name: "prune-invitations", schedule: "0 44 * * * *", run: () => pruneInvitations(app) },
  { name: "prune-shares", schedule: "0 46 * * * *", run: () => pruneShares(app) },
  { name: "prune-password-resets", schedule: "0 45 * * * *", run: () => prunePasswordResets(app) },
  {
    name: "send-mail",
    schedule: "*/2 * * * * *",
    run: () => sendMails(app, { password_reset: writeResetMail }),
    wakes: (wake) => app.signals.on("mail.due", wake),
  },
  { name: "notify-of-quotas", schedule: "*/20 * * * * *", run: () => notifyOfQuotas(app) },
  { name: "prune-replaced-media", schedule: "30 */5 * * * *", run: () => pruneReplacedMedia(app) },
  { name: "complete-abandoned-streams", schedule: "*/5 * * * * *", run: () => abandonedStreams(app).complete() },
  { name: "prune-live-reports", schedule: "*/15 * * * * *", run: () => pruneReports(app) },
  { name: "bill-database-bytes", schedule: "*/30 * * * * *", run: () => billDatabaseBytes(app) },
  { name: "prune-watermarks", schedule: "0 47 * * * *", run: () => pruneWatermarks(app) },
  { name: "prune-audit", schedule: "0 37 * * * *", run: () => pruneAudit(app) },
  { name: "prune-answers", schedule: "0 7 * * * *", run: () => pruneResponses(app) },
];

async function recordKeyUse(app: App, authenticator: Authenticator): Promise<void> {
  const used = authenticator.takeUsedKeys();
  if (used.size === 0) return;
  await app.write(async (tx) => {
    for (const [id, { at: lastUsedAt, address: lastUsedAddress }] of used)
      await tx.update(apiKeys).set({ lastUsedAt, lastUsedAddress }).where(eq(apiKeys.id, id));
  });
}
