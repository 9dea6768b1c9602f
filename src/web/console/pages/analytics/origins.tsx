import { useState } from "preact/hooks";
import { Table } from "#web/console/components/table.tsx";
import { count } from "#web/console/format.ts";
import { useLanguage, useTexts } from "#web/console/texts/texts.tsx";
import { type Analytics, formatPercent, formatWatchTime } from "./metrics.ts";
import { texts } from "./texts.ts";

const FEW = 10;
const OTHERS = "*";

type Row = { id: string; name: string; play_count: number; watch_time_seconds: number };

/** Plays by country, where the server knows it, and by the page from which viewers came. */
export function Origins({ analytics: { countries, referrers = [] } }: { analytics: Analytics }) {
  const t = useTexts(texts);
  const { language } = useLanguage();
  const regions = new Intl.DisplayNames([language], { type: "region" });
  return (
    <>
      {countries && (
        <Breakdown
          id="countries"
          title={t("countries")}
          first={t("country")}
          rows={countries.map(({ country, ...sums }) => ({
            ...sums,
            id: country ?? "",
            name: country === null ? t("unknown") : (regions.of(country) ?? country),
          }))}
        />
      )}
      <Breakdown
        id="referrers"
        title={t("referrers")}
        first={t("referrer")}
        rows={referrers.map(({ referrer, ...sums }) => ({
          ...sums,
          id: referrer ?? "",
          name: referrer === null ? t("direct") : referrer === OTHERS ? t("others") : referrer,
        }))}
      />
    </>
  );
}

function Breakdown({ id, title, first, rows }: { id: string; title: string; first: string; rows: Row[] }) {
  const t = useTexts(texts);
  const { language } = useLanguage();
  const [areAllShown, setAllShown] = useState(false);
  const total = rows.reduce((sum, { play_count }) => sum + play_count, 0);
  const share = ({ play_count }: Row) => (total === 0 ? 0 : play_count / total);
  return (
    <section class="card-section" aria-labelledby={id}>
      <h2 id={id}>{title}</h2>
      {rows.length === 0 ? (
        <p class="empty">{t("noViews")}</p>
      ) : (
        <Table
          items={areAllShown ? rows : rows.slice(0, FEW)}
          columns={[
            { title: first, cell: ({ name }) => name },
            {
              title: t("share"),
              cell: (row) => (
                <span class="device-share">
                  <meter value={share(row)} aria-hidden="true" /> {formatPercent(share(row), language)}
                </span>
              ),
            },
            { title: t("plays"), cell: ({ play_count }) => count(play_count, language) },
            { title: t("watchTime"), cell: (row) => formatWatchTime(row.watch_time_seconds, language) },
          ]}
        />
      )}
      {rows.length > FEW && (
        <button type="button" aria-expanded={areAllShown} onClick={() => setAllShown(!areAllShown)}>
          {areAllShown ? t("showFewer") : t("showAll", { count: rows.length })}
        </button>
      )}
    </section>
  );
}
