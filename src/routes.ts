import type { App } from "#app.ts";
import { activityRoutes } from "#features/activity/routes.ts";
import { cmcdRoutes } from "#features/analytics/cmcd/routes.ts";
import { cmcdSessions } from "#features/analytics/cmcd/sessions.ts";
import { nowRoutes } from "#features/analytics/now-routes.ts";
import { playsRoute } from "#features/analytics/plays-routes.ts";
import { analyticsRoutes } from "#features/analytics/routes.ts";
import { viewerRoutes } from "#features/analytics/viewer-routes.ts";
import { assetCsvRoutes } from "#features/assets/csv-routes.ts";
import { playbackIdRoutes } from "#features/assets/playback-id-routes.ts";
import { assetRoutes } from "#features/assets/routes.ts";
import { intentRoutes } from "#features/batch-uploads/batch-upload-routes.ts";
import { proxyRoutes } from "#features/batch-uploads/proxy-routes.ts";
import { announcedForKey } from "#features/batch-uploads/queries.ts";
import { batchRoutes } from "#features/batch-uploads/routes.ts";
import { billingRoutes } from "#features/billing/routes.ts";
import { joinRoutes } from "#features/clips/join-routes.ts";
import { clipRoutes } from "#features/clips/routes.ts";
import { collectionRoutes } from "#features/collections/routes.ts";
import { deviceRoutes } from "#features/credentials/devices/routes.ts";
import { keyRoutes } from "#features/credentials/keys/routes.ts";
import { oidcRoutes } from "#features/credentials/oidc/routes.ts";
import { sessionRoutes } from "#features/credentials/sessions/routes.ts";
import { signingKeyRoutes } from "#features/credentials/signing-keys/routes.ts";
import { encodingProfileRoutes } from "#features/encoding-profiles/routes.ts";
import { eventStreamRoutes } from "#features/event-stream/routes.ts";
import { importRunRoutes } from "#features/import-runs/routes.ts";
import { liveAnalyticsRoutes } from "#features/live/analytics-routes.ts";
import { channelViewers } from "#features/live/channel-viewers.ts";
import { liveClipRoutes } from "#features/live/clip-routes.ts";
import { liveDeliveryRoutes } from "#features/live/delivery/routes.ts";
import { renditionRoutes } from "#features/live/renditions/routes.ts";
import { liveRoutes } from "#features/live/routes.ts";
import { simulcastRoutes } from "#features/live/simulcast/routes.ts";
import { liveStateRoutes } from "#features/live/state-routes.ts";
import { liveStreamRoutes } from "#features/live/stream-routes.ts";
import { findViewableChannel } from "#features/live/viewable-channel.ts";
import { whipRoutes } from "#features/live/whip/routes.ts";
import { mcpRoutes } from "#features/mcp/routes.ts";
import { muxRoutes } from "#features/mux/routes.ts";
import { notificationRoutes } from "#features/notifications/routes.ts";
import { backupRoutes } from "#features/operations/backup/routes.ts";
import { doctorRoutes } from "#features/operations/doctor/routes.ts";
import { migrationRoutes } from "#features/operations/migration/routes.ts";
import { auditRoutes } from "#features/operations/system/audit.ts";
import { metricsRoutes } from "#features/operations/system/metrics.ts";
import { systemRoutes } from "#features/operations/system/routes.ts";
import { operatorRoutes } from "#features/operations/system/state-routes.ts";
import { type Egress, egressCounter } from "#features/playback/egress.ts";
import { graphRoutes } from "#features/playback/graph-export.ts";
import { posterRoutes } from "#features/playback/images/poster-routes.ts";
import { createMediaHandler } from "#features/playback/media.ts";
import { playbackRoutes } from "#features/playback/routes.ts";
import { playbackTokens } from "#features/playback/token.ts";
import { playbackRestrictionRoutes } from "#features/playback-restrictions/routes.ts";
import { searchRoute } from "#features/search/routes.ts";
import { shareRoutes } from "#features/shares/routes.ts";
import { staticRenditionRoutes } from "#features/static-renditions/routes.ts";
import { derivedSubtitleRoutes } from "#features/subtitles/derived-routes.ts";
import { featureRoutes } from "#features/subtitles/features.ts";
import { subtitleRoutes } from "#features/subtitles/routes.ts";
import { speechModelRoutes } from "#features/subtitles/speech-model-routes.ts";
import { transcriptRoute } from "#features/subtitles/transcript.ts";
import { withinStorage } from "#features/tenants/quota.ts";
import { tenantRoutes } from "#features/tenants/routes.ts";
import { tenantSettingsRoutes } from "#features/tenants/settings-routes.ts";
import { audioTrackRoutes } from "#features/tracks/audio/routes.ts";
import { trackRoutes } from "#features/tracks/timed/routes.ts";
import { addedAudioRoutes } from "#features/transcoding/added-audio/routes.ts";
import { assetJobRoutes } from "#features/transcoding/asset-routes.ts";
import { bulkRoutes } from "#features/transcoding/bulk.ts";
import { generateSubtitleRoute } from "#features/transcoding/caption-jobs/generate-route.ts";
import { captionJobRoutes } from "#features/transcoding/caption-jobs/routes.ts";
import { captionPartRoutes } from "#features/transcoding/caption-parts/routes.ts";
import { cloudJobRoutes } from "#features/transcoding/cloud-routes.ts";
import { jobRoutes } from "#features/transcoding/routes.ts";
import { taskRoutes } from "#features/transcoding/tasks/routes.ts";
import { multipartRoutes } from "#features/uploads/multipart-routes.ts";
import { objectRoutes } from "#features/uploads/objects.ts";
import { uploadRoutes } from "#features/uploads/routes.ts";
import { tusRoutes } from "#features/uploads/tus/routes.ts";
import { invitationRoutes } from "#features/users/invitations.ts";
import { meRoutes } from "#features/users/me.ts";
import { passwordResetRoutes } from "#features/users/password-resets.ts";
import { userRoutes } from "#features/users/routes.ts";
import { totpRoutes } from "#features/users/totp.ts";
import { webhookOperatorRoutes } from "#features/webhooks/operator.ts";
import { webhookRoutes } from "#features/webhooks/routes.ts";
import type { Route } from "#platform/http/route.ts";
import { collectionPageRoutes } from "#web/collections/routes.ts";
import { consoleRoutes } from "#web/console.ts";
import { documentRoutes } from "#web/docs.ts";
import { guideRoutes } from "#web/guide.ts";
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
    ...importRunRoutes,
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
    ...captionPartRoutes,
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
    ...viewerRoutes,
    ...nowRoutes(channelViewers),
    playsRoute,
    ...cmcdRoutes(tokens, findViewableChannel),
    ...billingRoutes,
    ...webhookRoutes,
    ...webhookOperatorRoutes,
    ...eventStreamRoutes,
    ...batchRoutes,
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
  return {
    routes: [...api, ...documentRoutes(api), ...guideRoutes, ...mcpRoutes(api), ...muxRoutes(app, { media, tokens })],
    egress,
  };
}
