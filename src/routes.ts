import type { App } from "#app.ts";
import type { Route } from "#platform/http/route.ts";
import { activityRoutes } from "#resources/activity/routes.ts";
import { cmcdRoutes } from "#resources/analytics/cmcd/routes.ts";
import { cmcdSessions } from "#resources/analytics/cmcd/sessions.ts";
import { analyticsRoutes } from "#resources/analytics/routes.ts";
import { assetCsvRoutes } from "#resources/assets/csv-routes.ts";
import { playbackIdRoutes } from "#resources/assets/playback-id-routes.ts";
import { assetRoutes } from "#resources/assets/routes.ts";
import { audioTrackRoutes } from "#resources/audio-tracks/routes.ts";
import { billingRoutes } from "#resources/billing/routes.ts";
import { joinRoutes } from "#resources/clips/join-routes.ts";
import { clipRoutes } from "#resources/clips/routes.ts";
import { collectionRoutes } from "#resources/collections/routes.ts";
import { deviceRoutes } from "#resources/devices/routes.ts";
import { encodingProfileRoutes } from "#resources/encoding-profiles/routes.ts";
import { eventStreamRoutes } from "#resources/event-stream/routes.ts";
import { intentRoutes } from "#resources/ingest/batch-upload-routes.ts";
import { proxyRoutes } from "#resources/ingest/proxy-routes.ts";
import { announcedForKey } from "#resources/ingest/queries.ts";
import { ingestRoutes } from "#resources/ingest/routes.ts";
import { addedAudioRoutes } from "#resources/jobs/added-audio/routes.ts";
import { assetJobRoutes } from "#resources/jobs/asset-routes.ts";
import { bulkRoutes } from "#resources/jobs/bulk.ts";
import { generateSubtitleRoute } from "#resources/jobs/caption-jobs/generate-route.ts";
import { captionJobRoutes } from "#resources/jobs/caption-jobs/routes.ts";
import { cloudJobRoutes } from "#resources/jobs/cloud-routes.ts";
import { jobRoutes } from "#resources/jobs/routes.ts";
import { taskRoutes } from "#resources/jobs/tasks/routes.ts";
import { keyRoutes } from "#resources/keys/routes.ts";
import { liveAnalyticsRoutes } from "#resources/live/analytics-routes.ts";
import { liveClipRoutes } from "#resources/live/clip-routes.ts";
import { liveDeliveryRoutes } from "#resources/live/delivery/routes.ts";
import { renditionRoutes } from "#resources/live/renditions/routes.ts";
import { liveRoutes } from "#resources/live/routes.ts";
import { simulcastRoutes } from "#resources/live/simulcast/routes.ts";
import { liveStateRoutes } from "#resources/live/state-routes.ts";
import { liveStreamRoutes } from "#resources/live/stream-routes.ts";
import { findViewableChannel } from "#resources/live/viewable-channel.ts";
import { whipRoutes } from "#resources/live/whip/routes.ts";
import { mcpRoutes } from "#resources/mcp/routes.ts";
import { muxRoutes } from "#resources/mux/routes.ts";
import { notificationRoutes } from "#resources/notifications/routes.ts";
import { oidcRoutes } from "#resources/oidc/routes.ts";
import { auditRoutes } from "#resources/operator/audit.ts";
import { backupRoutes } from "#resources/operator/backup/routes.ts";
import { doctorRoutes } from "#resources/operator/doctor/routes.ts";
import { metricsRoutes } from "#resources/operator/metrics.ts";
import { migrationRoutes } from "#resources/operator/migration/routes.ts";
import { operatorRoutes } from "#resources/operator/routes.ts";
import { systemRoutes } from "#resources/operator/system/routes.ts";
import { type Egress, egressCounter } from "#resources/playback/egress.ts";
import { graphRoutes } from "#resources/playback/graph-export.ts";
import { posterRoutes } from "#resources/playback/images/poster-routes.ts";
import { createMediaHandler } from "#resources/playback/media.ts";
import { playbackRoutes } from "#resources/playback/routes.ts";
import { playbackTokens } from "#resources/playback/token.ts";
import { playbackRestrictionRoutes } from "#resources/playback-restrictions/routes.ts";
import { searchRoute } from "#resources/search/routes.ts";
import { sessionRoutes } from "#resources/sessions/routes.ts";
import { shareRoutes } from "#resources/shares/routes.ts";
import { signingKeyRoutes } from "#resources/signing-keys/routes.ts";
import { staticRenditionRoutes } from "#resources/static-renditions/routes.ts";
import { derivedSubtitleRoutes } from "#resources/subtitles/derived-routes.ts";
import { featureRoutes } from "#resources/subtitles/features.ts";
import { subtitleRoutes } from "#resources/subtitles/routes.ts";
import { speechModelRoutes } from "#resources/subtitles/speech-model-routes.ts";
import { transcriptRoute } from "#resources/subtitles/transcript.ts";
import { withinStorage } from "#resources/tenants/quota.ts";
import { tenantRoutes } from "#resources/tenants/routes.ts";
import { tenantSettingsRoutes } from "#resources/tenants/settings-routes.ts";
import { trackRoutes } from "#resources/tracks/routes.ts";
import { multipartRoutes } from "#resources/uploads/multipart-routes.ts";
import { objectRoutes } from "#resources/uploads/objects.ts";
import { uploadRoutes } from "#resources/uploads/routes.ts";
import { tusRoutes } from "#resources/uploads/tus/routes.ts";
import { invitationRoutes } from "#resources/users/invitations.ts";
import { meRoutes } from "#resources/users/me.ts";
import { passwordResetRoutes } from "#resources/users/password-resets.ts";
import { userRoutes } from "#resources/users/routes.ts";
import { totpRoutes } from "#resources/users/totp.ts";
import { webhookOperatorRoutes } from "#resources/webhooks/operator.ts";
import { webhookRoutes } from "#resources/webhooks/routes.ts";
import { collectionPageRoutes } from "#web/collections/routes.ts";
import { consoleRoutes } from "#web/console.ts";
import { documentRoutes } from "#web/docs.ts";
import { livePageRoutes } from "#web/live-pages.ts";
import { pageRoutes } from "#web/pages.ts";
import { paymentPageRoute } from "#web/payment-page.ts";
import { sharePageRoutes } from "#web/share-pages.ts";

/** The route table. All information about routes is derived from it. */
export function allRoutes(app: App): { routes: Route[]; egress: Egress } {
  const tokens = playbackTokens(app);
  const egress = egressCounter(app);
  const media = createMediaHandler(app, { tokens, egress, onMedia: cmcdSessions(app).observe });
  const api = [
    ...tenantRoutes,
    ...tenantSettingsRoutes,
    ...keyRoutes,
    ...signingKeyRoutes,
    ...deviceRoutes,
    ...sessionRoutes,
    ...userRoutes,
    ...invitationRoutes,
    ...meRoutes,
    ...notificationRoutes,
    ...totpRoutes,
    ...passwordResetRoutes,
    ...oidcRoutes,
    ...activityRoutes,
    ...assetRoutes,
    ...playbackIdRoutes,
    ...assetCsvRoutes,
    searchRoute,
    ...collectionRoutes,
    ...uploadRoutes,
    ...multipartRoutes,
    ...tusRoutes,
    ...playbackRestrictionRoutes,
    ...audioTrackRoutes,
    ...staticRenditionRoutes,
    ...subtitleRoutes,
    transcriptRoute,
    ...derivedSubtitleRoutes,
    generateSubtitleRoute,
    ...featureRoutes,
    ...encodingProfileRoutes(withinStorage),
    ...jobRoutes,
    ...taskRoutes,
    ...cloudJobRoutes,
    ...addedAudioRoutes,
    ...captionJobRoutes,
    ...trackRoutes,
    ...clipRoutes,
    ...joinRoutes,
    ...assetJobRoutes,
    ...bulkRoutes,
    ...graphRoutes,
    ...posterRoutes,
    ...shareRoutes,
    ...playbackRoutes(tokens, media),
    ...analyticsRoutes(tokens, findViewableChannel),
    ...cmcdRoutes(tokens, findViewableChannel),
    ...billingRoutes,
    ...webhookRoutes,
    ...webhookOperatorRoutes,
    ...eventStreamRoutes,
    ...ingestRoutes,
    ...intentRoutes,
    ...proxyRoutes,
    ...liveRoutes(tokens),
    ...renditionRoutes,
    ...speechModelRoutes,
    ...liveStateRoutes(tokens),
    ...liveClipRoutes,
    ...liveStreamRoutes,
    ...simulcastRoutes,
    ...liveAnalyticsRoutes,
    ...whipRoutes,
    ...liveDeliveryRoutes(tokens, egress),
    ...operatorRoutes,
    ...systemRoutes,
    ...doctorRoutes,
    ...migrationRoutes,
    ...backupRoutes,
    ...auditRoutes,
    ...metricsRoutes,
    ...objectRoutes(announcedForKey),
    ...pageRoutes(tokens, egress),
    ...livePageRoutes(tokens),
    ...sharePageRoutes(tokens, egress),
    ...collectionPageRoutes,
    paymentPageRoute,
    ...consoleRoutes,
  ];
  return { routes: [...api, ...documentRoutes(api), ...mcpRoutes(api), ...muxRoutes(app, { media, tokens })], egress };
}
