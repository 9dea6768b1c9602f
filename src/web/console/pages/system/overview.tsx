import { useEffect } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { ShareBar } from "#web/console/components/share-bar.tsx";
import { Sparkline } from "#web/console/components/sparkline.tsx";
import { Time } from "#web/console/components/time.tsx";
import { bytes, count } from "#web/console/format.ts";
import { useResource } from "#web/console/hooks/use-resource.ts";
import { useLanguage, useTexts } from "#web/console/texts/texts.tsx";
import { texts } from "./texts.ts";

const HOUR_SECONDS = 3600;

/** What runs here, on which disk, and how busy it was in the last hour. */
export function Overview() {
  const t = useTexts(texts);
  const { language } = useLanguage();
  const system = useResource(() => vodbox.getSystem(), []);
  const { value } = system;
  return (
    <section aria-labelledby="overview">
      <h2 id="overview">{t("overview")}</h2>
      <ErrorNotice error={system.error} onRetry={system.reload} />
      {value && (
        <dl class="facts">
          <dt>{t("version")}</dt>
          <dd>
            vodbox {value.version}, Node.js {value.node}
          </dd>
          <dt>{t("runsSince")}</dt>
          <dd>
            <Time at={value.started_at} />
          </dd>
          <dt>{t("processes")}</dt>
          <dd>
            {value.processes} + {value.workers} {t("ownWorkers")}
          </dd>
          <dt>{t("database")}</dt>
          <dd>{value.database_bytes === null ? t("remote") : bytes(value.database_bytes, language)}</dd>
          <dt>{t("storage")}</dt>
          <dd>{value.storage ?? "–"}</dd>
          {value.disk && (
            <>
              <dt>{t("disk")}</dt>
              <dd>
                {t("freeOf", {
                  free: bytes(value.disk.free_bytes, language),
                  size: bytes(value.disk.size_bytes, language),
                })}
                <ShareBar
                  label={t("diskUsed")}
                  whole={value.disk.size_bytes}
                  parts={[{ label: t("diskUsed"), value: value.disk.size_bytes - value.disk.free_bytes }]}
                />
              </dd>
            </>
          )}
        </dl>
      )}
      <LastHour />
    </section>
  );
}

function LastHour() {
  const t = useTexts(texts);
  const { language } = useLanguage();
  const { value, error, reload } = useResource(() => vodbox.getSystemHistory(), []);
  const seconds = value?.interval_seconds;
  useEffect(() => {
    if (seconds === undefined) return;
    const timer = setInterval(() => document.visibilityState === "visible" && reload(), seconds * 1000);
    return () => clearInterval(timer);
  }, [seconds, reload]);
  if (error) return <ErrorNotice error={error} onRetry={reload} />;
  if (!value) return null;
  const { interval_seconds: interval, samples } = value;
  const length = HOUR_SECONDS / interval;
  const percent = (share: number) => `${count(share * 100, language)} %`;
  const number = (figure: number) => count(figure, language);
  const size = (figure: number) => bytes(figure, language);
  const charts = [
    { label: t("requests"), values: samples.map(({ requests }) => requests / interval), format: number },
    { label: t("errors"), values: samples.map(({ errors }) => errors), format: number },
    { label: t("cpu"), values: samples.map(({ cpu_seconds }) => cpu_seconds / interval), format: percent, max: 1 },
    { label: t("eventLoop"), values: samples.map((one) => one.event_loop_busy), format: percent, max: 1 },
    { label: t("memory"), values: samples.map(({ memory_bytes }) => memory_bytes), format: size },
    { label: t("queue"), values: samples.map(({ jobs_queued }) => jobs_queued), format: number },
    { label: t("runningJobs"), values: samples.map(({ jobs_running }) => jobs_running), format: number },
    { label: t("delivered"), values: samples.map((one) => one.egress_bytes / interval), format: size },
  ];
  return (
    <>
      <h3>{t("lastHour")}</h3>
      <div class="sparks">
        {charts.map(({ values, ...chart }) => (
          <Sparkline key={chart.label} values={values.slice(-length)} length={length} {...chart} />
        ))}
      </div>
    </>
  );
}
