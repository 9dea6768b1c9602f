import type { Result } from "#clients/typescript/types.ts";
import { pagePath } from "#web/console/base.ts";
import { Table } from "#web/console/components/table.tsx";
import { downloadCsv } from "#web/console/csv.ts";
import { count } from "#web/console/format.ts";
import { useLanguage, useTexts } from "#web/console/texts/texts.tsx";
import { formatWatchTime } from "./metrics.ts";
import { texts } from "./texts.ts";

type TopAsset = NonNullable<Result<"getAnalytics">["top_assets"]>[number];
type Props = { assets: TopAsset[]; name: string; onChoose(id: string): void };

/** The videos with the most plays. */
export function TopAssets({ assets, name, onChoose }: Props) {
  const t = useTexts(texts);
  const { language } = useLanguage();
  const save = () =>
    downloadCsv(`${name}-videos.csv`, [
      ["asset_id", "external_id", "title", "play_count", "watch_time_seconds"],
      ...assets.map((one) => [one.asset_id, one.external_id, one.title, one.play_count, one.watch_time_seconds]),
    ]);
  return (
    <section class="card-section" aria-labelledby="top-assets">
      <h2 id="top-assets">{t("topAssets")}</h2>
      {assets.length === 0 ? (
        <p class="empty">{t("noViews")}</p>
      ) : (
        <>
          <Table
            items={assets.map((one) => ({ id: one.asset_id, ...one }))}
            columns={[
              { title: t("title"), cell: ({ id, title }) => <a href={pagePath(`assets/${id}`)}>{title}</a> },
              { title: t("plays"), cell: ({ play_count }) => count(play_count, language) },
              { title: t("watchTime"), cell: (one) => formatWatchTime(one.watch_time_seconds, language) },
              {
                title: t("actions"),
                cell: ({ id, title }) => (
                  <button
                    type="button"
                    class="nowrap"
                    aria-label={t("showOf", { title })}
                    onClick={() => onChoose(String(id))}
                  >
                    {t("analytics")}
                  </button>
                ),
              },
            ]}
          />
          <p>
            <button type="button" onClick={save}>
              {t("exportTop")}
            </button>
          </p>
        </>
      )}
    </section>
  );
}
