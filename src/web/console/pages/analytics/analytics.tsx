import { useMemo, useState } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { vodbox } from "#web/console/api.ts";
import { pagePath } from "#web/console/base.ts";
import { Select } from "#web/console/components/form.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { PageHead } from "#web/console/components/page-head.tsx";
import { useAttempt } from "#web/console/hooks/use-attempt.ts";
import { useResource } from "#web/console/hooks/use-resource.ts";
import { useSession } from "#web/console/session.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import { AssetSearch } from "./asset-search.tsx";
import { Devices } from "./devices.tsx";
import { Filters } from "./filters.tsx";
import { Origins } from "./origins.tsx";
import { Overview } from "./overview.tsx";
import { before, selectionOf } from "./period.ts";
import { Retention } from "./retention.tsx";
import { texts } from "./texts.ts";
import { TopAssets } from "./top-assets.tsx";
import { TopChannels } from "./top-channels.tsx";
import { ViewerData } from "./viewer-data.tsx";

const TOP = 10;

/** What viewers did: of a tenant or of one video, in a period that is in the page's address. */
export default function Analytics() {
  const t = useTexts(texts);
  const { session, may } = useSession();
  const { failure, attempt } = useAttempt();
  const [isViewerShown, setViewerShown] = useState(false);
  const { query, route } = useLocation();
  const change = (changes: Record<string, string | null>) => {
    const entries = Object.entries({ ...query, ...changes }).filter((entry): entry is [string, string] => !!entry[1]);
    route(`${pagePath("analytics")}?${new URLSearchParams(entries)}`);
  };
  const tenants = useResource(
    async () => (session.tenant_id === null ? await vodbox.listTenants({ limit: 500 }) : []),
    [session.tenant_id],
  );
  // The end of the period is the time of the last change, not that of each rendering.
  const selection = useMemo(() => selectionOf(query, Date.now()), [JSON.stringify(query)]);
  const tenant = session.tenant_id ?? selection.tenant ?? tenants.value?.[0]?.id ?? null;
  const { asset } = selection;
  const { value, error, reload } = useResource(async () => {
    if (asset === null && tenant === null) return null;
    const { from, to, by, utcOffsetHours } = selectionOf(query, Date.now());
    const range = { from, to, interval: by, utc_offset_hours: utcOffsetHours, details: "true" } as const;
    const earlier = { ...before({ from, to }), details: "true" } as const;
    if (asset === null) {
      const scope = session.tenant_id === null && tenant !== null ? { tenant_id: tenant } : {};
      const [analytics, previous] = await Promise.all([
        vodbox.getAnalytics({ ...range, ...scope, top: TOP }),
        vodbox.getAnalytics({ ...earlier, ...scope }),
      ]);
      return { asset: null, analytics, previous };
    }
    const [found, analytics, previous] = await Promise.all([
      vodbox.getAsset({ id: asset }),
      vodbox.getAssetAnalytics({ id: asset, ...range, retention: "true" }),
      vodbox.getAssetAnalytics({ id: asset, ...earlier }),
    ]);
    return { asset: found, analytics, previous };
  }, [selection, asset, tenant]);
  const analytics = value?.analytics;
  const nowPath = pagePath(
    session.tenant_id === null && tenant !== null ? `analytics/now?tenant=${tenant}` : "analytics/now",
  );
  return (
    <>
      <PageHead title={t("analytics")}>
        <button type="button" onClick={() => route(nowPath)}>
          {t("now")}
        </button>
        <button type="button" onClick={reload}>
          {t("refresh")}
        </button>
        {may("assets:write") && (
          <button type="button" onClick={() => setViewerShown(true)}>
            {t("viewerData")}
          </button>
        )}
      </PageHead>
      <ErrorNotice error={failure} />
      {isViewerShown && (
        <ViewerData
          tenant={session.tenant_id === null ? tenant : null}
          attempt={attempt}
          onClose={() => setViewerShown(false)}
        />
      )}
      <div class="row filters analytics-filters">
        {session.tenant_id === null && asset === null && tenants.value && (
          <Select
            label={t("tenant")}
            name="tenant"
            value={String(tenant)}
            options={tenants.value.map(({ id, name }) => [String(id), name])}
            onChange={(id) => change({ tenant: id })}
          />
        )}
        <Filters selection={selection} onChange={change} />
        <AssetSearch tenant={session.tenant_id === null ? tenant : null} onChoose={(id) => change({ asset: id })} />
      </div>
      <ErrorNotice error={tenants.error} onRetry={tenants.reload} />
      <ErrorNotice error={error} onRetry={reload} />
      {!value && !error && <p class="fine">{t("loading")}</p>}
      {value?.asset && (
        <p class="row subject">
          <a href={pagePath(`assets/${value.asset.id}`)}>{value.asset.title}</a>
          <button type="button" onClick={() => change({ asset: null })}>
            {t("allAssets")}
          </button>
        </p>
      )}
      {value && analytics && (
        <Overview analytics={analytics} previous={value.previous} selection={selection} name={nameOf(analytics)} />
      )}
      {value?.asset && analytics && "retention" in analytics && analytics.retention && (
        <Retention
          assetId={value.asset.id}
          durationSeconds={value.asset.duration_seconds}
          curve={analytics.retention}
        />
      )}
      {analytics && (
        <div class="halves">
          <Devices analytics={analytics} />
          <Origins analytics={analytics} />
          {"top_assets" in analytics && analytics.top_assets && (
            <TopAssets
              assets={analytics.top_assets}
              name={nameOf(analytics)}
              onChoose={(id) => change({ asset: id })}
            />
          )}
          {"top_channels" in analytics && analytics.top_channels && analytics.top_channels.length > 0 && (
            <TopChannels channels={analytics.top_channels} />
          )}
        </div>
      )}
    </>
  );
}

/** The beginning of the names of exported files. */
const nameOf = (analytics: { from: string; to: string } & ({ asset_id: number } | { tenant_id: number })) =>
  `analytics-${"asset_id" in analytics ? `asset-${analytics.asset_id}` : `tenant-${analytics.tenant_id}`}` +
  `-${analytics.from.slice(0, 10)}-${analytics.to.slice(0, 10)}`;
