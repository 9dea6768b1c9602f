import { useLocation } from "preact-iso/router";
import { vodbox } from "#web/console/api.ts";
import { pagePath } from "#web/console/base.ts";
import { Chart } from "#web/console/components/chart.tsx";
import { Select } from "#web/console/components/form.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { PageHead } from "#web/console/components/page-head.tsx";
import { Table } from "#web/console/components/table.tsx";
import { count } from "#web/console/format.ts";
import { useRefresh } from "#web/console/hooks/use-refresh.ts";
import { useResource } from "#web/console/hooks/use-resource.ts";
import { useSession } from "#web/console/session.tsx";
import { useLanguage, useTexts } from "#web/console/texts/texts.tsx";
import { texts } from "./texts.ts";

/** Players report every ten seconds. */
const REFRESH_MS = 10_000;

/** Who watches at this moment: all videos and live channels of a tenant. */
export default function Now() {
  const t = useTexts(texts);
  const { language } = useLanguage();
  const { session } = useSession();
  const { query, route } = useLocation();
  const tenants = useResource(
    async () => (session.tenant_id === null ? await vodbox.listTenants({ limit: 500 }) : []),
    [session.tenant_id],
  );
  const tenant = session.tenant_id ?? (Number(query.tenant) || tenants.value?.[0]?.id) ?? null;
  const { value, error, reload } = useResource(async () => {
    if (tenant === null) return null;
    return await vodbox.getWatchedNow(session.tenant_id === null ? { tenant_id: tenant } : {});
  }, [tenant, session.tenant_id]);
  useRefresh(reload, REFRESH_MS);
  const time = new Intl.DateTimeFormat(language, { timeStyle: "short" });
  const formatCount = (amount: number) => count(Math.round(amount), language);
  return (
    <>
      <PageHead title={t("now")} back="analytics" />
      {session.tenant_id === null && tenants.value && (
        <div class="row filters">
          <Select
            label={t("tenant")}
            name="tenant"
            value={String(tenant)}
            options={tenants.value.map(({ id, name }) => [String(id), name])}
            onChange={(id) => route(`${pagePath("analytics/now")}?tenant=${id}`)}
          />
        </div>
      )}
      <ErrorNotice error={tenants.error ?? error} onRetry={reload} />
      {!value && !error && <p class="fine">{t("loading")}</p>}
      {value && (
        <>
          <section class="card-section">
            <div class="tiles" role="status">
              <Figure name={t("viewersNow")} text={formatCount(value.viewers)} />
              <Figure name={t("viewersOfFiveMinutes")} text={formatCount(value.viewers_5m)} />
            </div>
          </section>
          <section class="card-section" aria-labelledby="half-hour">
            <h2 id="half-hour">{t("lastHalfHour")}</h2>
            <Chart
              label={t("viewersByMinute")}
              kind="area"
              // The current minute has only begun.
              xs={value.timeseries.slice(0, -1).map(({ start }) => Date.parse(start) / 1000)}
              ys={value.timeseries.slice(0, -1).map(({ viewers }) => viewers)}
              isTime
              formatX={(seconds) => time.format(seconds * 1000)}
              formatY={formatCount}
              least={5}
              isWhole
            />
          </section>
          <section class="card-section" aria-labelledby="watched-now">
            <h2 id="watched-now">{t("watchedNow")}</h2>
            {value.videos.length === 0 ? (
              <p class="empty">{t("watchedByNone")}</p>
            ) : (
              <Table
                items={value.videos.map((video) => ({ ...video, id: video.asset_id ?? `live ${video.channel_id}` }))}
                columns={[
                  {
                    title: t("video"),
                    cell: ({ asset_id, channel_id, title }) => (
                      <a href={pagePath(asset_id === null ? `live/${channel_id}` : `assets/${asset_id}`)}>{title}</a>
                    ),
                  },
                  { title: t("viewersNow"), cell: ({ viewers }) => formatCount(viewers) },
                  { title: t("viewersOfFiveMinutes"), cell: ({ viewers_5m }) => formatCount(viewers_5m) },
                ]}
              />
            )}
          </section>
        </>
      )}
    </>
  );
}

const Figure = ({ name, text }: { name: string; text: string }) => (
  <div class="tile">
    <span class="fine">{name}</span>
    <strong>{text}</strong>
  </div>
);
