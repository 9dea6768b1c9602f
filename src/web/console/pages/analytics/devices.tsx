import { Table } from "#web/console/components/table.tsx";
import { count } from "#web/console/format.ts";
import { useLanguage, useTexts } from "#web/console/texts/texts.tsx";
import { type Analytics, formatPercent, formatWatchTime } from "./metrics.ts";
import { texts } from "./texts.ts";

/** Plays by class of device. */
export function Devices({ analytics: { devices = [] } }: { analytics: Analytics }) {
  const t = useTexts(texts);
  const { language } = useLanguage();
  const total = devices.reduce((sum, { play_count }) => sum + play_count, 0);
  const rows = devices
    .map((one) => ({ id: one.device, share: total === 0 ? 0 : one.play_count / total, ...one }))
    .sort((a, b) => b.play_count - a.play_count);
  return (
    <section class="card-section" aria-labelledby="devices">
      <h2 id="devices">{t("devices")}</h2>
      {rows.length === 0 ? (
        <p class="empty">{t("noViews")}</p>
      ) : (
        <Table
          items={rows}
          columns={[
            { title: t("device"), cell: ({ device }) => t(device) },
            {
              title: t("share"),
              cell: ({ share }) => (
                <span class="device-share">
                  <meter value={share} aria-hidden="true" /> {formatPercent(share, language)}
                </span>
              ),
            },
            { title: t("plays"), cell: ({ play_count }) => count(play_count, language) },
            { title: t("watchTime"), cell: (one) => formatWatchTime(one.watch_time_seconds, language) },
            { title: t("completion"), cell: (one) => formatPercent(one.completion_rate, language) },
          ]}
        />
      )}
    </section>
  );
}
