import { useMemo } from "preact/hooks";
import { Chart } from "#web/console/components/chart.tsx";
import { Table } from "#web/console/components/table.tsx";
import { count, duration } from "#web/console/format.ts";
import { useResource } from "#web/console/hooks/use-resource.ts";
import { useSession } from "#web/console/session.tsx";
import { useLanguage, useTexts } from "#web/console/texts/texts.tsx";
import { formatPercent } from "./metrics.ts";
import { framesAcross, loadStoryboard, type StoryboardFrame } from "./storyboard.ts";
import { texts } from "./texts.ts";

const FRAMES = 12;
const NONE: StoryboardFrame[] = [];

type Props = {
  assetId: number;
  durationSeconds: number;
  curve: readonly { position_seconds: number; viewers: number }[];
};

/** How many views reached each position, over frames of the video at these positions. */
export function Retention({ assetId, durationSeconds, curve }: Props) {
  const t = useTexts(texts);
  const { language } = useLanguage();
  const { may } = useSession();
  const { value } = useResource(async () => (may("playback:read") ? await loadStoryboard(assetId) : NONE), [assetId]);
  const { xs, ys } = useMemo(() => {
    const most = curve[0]?.viewers ?? 0;
    return {
      xs: curve.map(({ position_seconds }) => position_seconds),
      ys: curve.map(({ viewers }) => (most === 0 ? null : viewers / most)),
    };
  }, [curve]);
  const formatY = useMemo(() => (share: number) => formatPercent(share, language), [language]);
  const frames = framesAcross(value ?? NONE, durationSeconds, FRAMES);
  const rows = curve.map((point, index) => ({ id: index, ...point, share: ys[index] ?? null }));
  return (
    <section class="card-section" aria-labelledby="retention">
      <h2 id="retention">{t("retention")}</h2>
      <p class="fine">{t("retentionHint")}</p>
      <Chart label={t("retention")} kind="area" xs={xs} ys={ys} formatX={duration} formatY={formatY} least={1}>
        {frames.length > 0 && (
          <div class="frames">
            {frames.map(({ image, x, y, width, height }, index) => (
              <svg key={index} viewBox={`${x} ${y} ${width} ${height}`} aria-hidden="true">
                <image href={image} />
              </svg>
            ))}
          </div>
        )}
      </Chart>
      <details>
        <summary>{t("table")}</summary>
        <Table
          items={rows}
          columns={[
            { title: t("position"), cell: ({ position_seconds }) => duration(position_seconds) },
            { title: t("views"), cell: ({ viewers }) => count(viewers, language) },
            { title: t("share"), cell: ({ share }) => (share === null ? "–" : formatPercent(share, language)) },
          ]}
        />
      </details>
    </section>
  );
}
