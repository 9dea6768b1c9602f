import { useCallback } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { pagePath } from "#web/console/base.ts";
import { Badge } from "#web/console/components/badge.tsx";
import { Elapsed } from "#web/console/components/elapsed.tsx";
import { ListView } from "#web/console/components/list-view.tsx";
import { Table } from "#web/console/components/table.tsx";
import { Time } from "#web/console/components/time.tsx";
import { useLive } from "#web/console/hooks/live.ts";
import { useList } from "#web/console/hooks/use-list.ts";
import { useTexts } from "#web/console/texts/texts.tsx";
import { texts } from "./texts.ts";

const EVENTS: readonly string[] = ["live.stream.started", "live.stream.ended", "live.recording.ready"];

/** The streams of a channel, and the videos that were made of them. */
export function Streams({ channelId: id }: { channelId: number }) {
  const t = useTexts(texts);
  const list = useList(() => vodbox.listLiveStreams({ id }), [id]);
  const { reload } = list;
  useLive(
    useCallback(({ type }) => EVENTS.includes(type) && reload(), [reload]),
    reload,
  );
  return (
    <section class="card-section" aria-labelledby="recordings">
      <h2 id="recordings">{t("recordings")}</h2>
      <ListView list={list} empty={t("noRecordings")}>
        {(items) => (
          <Table
            items={items}
            columns={[
              { title: t("recordedAt"), cell: ({ started_at }) => <Time at={started_at} /> },
              { title: t("duration"), cell: (one) => <Elapsed from={one.started_at} to={one.ended_at} /> },
              {
                title: t("video"),
                cell: ({ asset_id, ended_at }) => {
                  if (ended_at === null) return <Badge state="running" text={t("onAir")} />;
                  return asset_id !== null && <a href={pagePath(`assets/${asset_id}`)}>{t("openVideo")}</a>;
                },
              },
            ]}
          />
        )}
      </ListView>
    </section>
  );
}
