import type { Result } from "#clients/typescript/types.ts";
import { pagePath } from "#web/console/base.ts";
import { Table } from "#web/console/components/table.tsx";
import { count } from "#web/console/format.ts";
import { useLanguage, useTexts } from "#web/console/texts/texts.tsx";
import { formatWatchTime } from "./metrics.ts";
import { texts } from "./texts.ts";

type TopChannel = NonNullable<Result<"getAnalytics">["top_channels"]>[number];

/** The live channels with the most plays. */
export function TopChannels({ channels }: { channels: TopChannel[] }) {
  const t = useTexts(texts);
  const { language } = useLanguage();
  return (
    <section class="card-section" aria-labelledby="top-channels">
      <h2 id="top-channels">{t("topChannels")}</h2>
      <Table
        items={channels.map((one) => ({ id: one.channel_id, ...one }))}
        columns={[
          { title: t("name"), cell: ({ id, name }) => <a href={pagePath(`live/${id}`)}>{name}</a> },
          { title: t("plays"), cell: ({ play_count }) => count(play_count, language) },
          { title: t("watchTime"), cell: (one) => formatWatchTime(one.watch_time_seconds, language) },
        ]}
      />
    </section>
  );
}
