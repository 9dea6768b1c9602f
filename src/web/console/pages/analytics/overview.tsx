import { useMemo, useState } from "preact/hooks";
import { Chart } from "#web/console/components/chart.tsx";
import { Table } from "#web/console/components/table.tsx";
import { downloadCsv } from "#web/console/csv.ts";
import { useLanguage, useTexts } from "#web/console/texts/texts.tsx";
import { type Analytics, type Bucket, METRICS, type Metric } from "./metrics.ts";
import type { Selection } from "./period.ts";
import { texts } from "./texts.ts";

type Props = {
  analytics: Analytics;
  /** The period of the same length before. */
  previous: Analytics;
  selection: Selection;
  name: string;
};

type Row = Bucket & { id: string };

const NONE: Bucket[] = [];
const numberIn = (bucket: Bucket, { field }: Metric) => {
  const value = bucket[field];
  return typeof value === "number" ? value : null;
};

/** The sums of the period, of which one is drawn by time. */
export function Overview({ analytics, previous, selection: { by, utcOffsetHours }, name }: Props) {
  const t = useTexts(texts);
  const { language } = useLanguage();
  const [metric, setMetric] = useState<Metric>(METRICS[0] as Metric);
  const buckets = analytics.timeseries ?? NONE;
  // Days are drawn at their midnight, which the chart knows in UTC only.
  const isUtc = by === "day";
  const shift = isUtc ? utcOffsetHours * 3600 : 0;
  const { xs, ys } = useMemo(
    () => ({
      xs: buckets.map(({ start }) => Date.parse(start) / 1000 + shift),
      ys: buckets.map((bucket) => numberIn(bucket, metric)),
    }),
    [buckets, metric, shift],
  );
  const formatX = useMemo(() => {
    const format = new Intl.DateTimeFormat(
      language,
      by === "day" ? { dateStyle: "medium", timeZone: "UTC" } : { dateStyle: "medium", timeStyle: "short" },
    );
    return (seconds: number) => format.format(seconds * 1000);
  }, [language, by]);
  const formatY = useMemo(() => (value: number) => metric.format(value, language), [metric, language]);
  const save = () =>
    downloadCsv(`${name}.csv`, [
      ["start", ...METRICS.map(({ field }) => field)],
      ...buckets.map((bucket) => [bucket.start, ...METRICS.map((one) => numberIn(bucket, one))]),
    ]);
  const rows: Row[] = buckets.map((bucket) => ({ id: bucket.start, ...bucket }));
  const shown = (value: number | null, { format }: Metric) => (value === null ? "–" : format(value, language));
  return (
    <section class="card-section" aria-label={t(metric.name)}>
      <fieldset class="tiles">
        <legend class="unseen">{t("metrics")}</legend>
        {METRICS.map((one) => (
          <button
            key={one.name}
            type="button"
            class="tile"
            aria-pressed={one === metric}
            onClick={() => setMetric(one)}
          >
            <span class="fine">{t(one.name)}</span>
            <strong>{shown(one.total(analytics), one)}</strong>
            <span class="fine row">
              <Change metric={one} now={one.total(analytics)} then={one.total(previous)} />
              <span>{one.more?.(analytics, language) ?? "\u00a0"}</span>
            </span>
          </button>
        ))}
      </fieldset>
      <p class="fine">{t(metric.meaning)}</p>
      {analytics.play_count === 0 && <p class="empty">{t("noViews")}</p>}
      <Chart
        label={t(metric.name)}
        kind="bars"
        xs={xs}
        ys={ys}
        isTime
        isUtc={isUtc}
        formatX={formatX}
        formatY={formatY}
        least={metric.least}
        isWhole={metric.isWhole ?? false}
      />
      <div class="row">
        <button type="button" onClick={save}>
          {t("exportCsv")}
        </button>
        {isUtc && (
          <span class="fine">
            {t("days", { zone: `UTC${utcOffsetHours < 0 ? "−" : "+"}${Math.abs(utcOffsetHours)}` })}
          </span>
        )}
      </div>
      <details class="behind">
        <summary>{t("table")}</summary>
        <Table<Row>
          items={rows}
          columns={[
            { title: t("time"), cell: ({ start }) => formatX(Date.parse(start) / 1000 + shift) },
            ...METRICS.map((one) => ({
              title: t(one.name),
              cell: (bucket: Bucket) => shown(numberIn(bucket, one), one),
            })),
          ]}
        />
      </details>
    </section>
  );
}

/** Smaller changes are shown as 0 %. */
const LEAST_CHANGE = 0.005;

type ChangeProps = { metric: Metric; now: number | null; then: number | null };

/** How much of the metric there is against the period before; nothing where that had none of it. */
function Change({ metric, now, then }: ChangeProps) {
  const t = useTexts(texts);
  const { language } = useLanguage();
  if (now === null || !then) return null;
  const change = now / then - 1;
  if (Math.abs(change) < LEAST_CHANGE) return null;
  const text = new Intl.NumberFormat(language, {
    style: "percent",
    maximumFractionDigits: 0,
    signDisplay: "exceptZero",
  }).format(change);
  const isBetter = change > 0 !== (metric.isLessBetter ?? false);
  return (
    <span class={isBetter ? "better" : "worse"} title={t("change", { change: text })}>
      <span aria-hidden="true">{text}</span>
      <span class="unseen">{t("change", { change: text })}</span>
    </span>
  );
}
