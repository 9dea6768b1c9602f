import { useEffect, useMemo } from "preact/hooks";
import { useRoute } from "preact-iso/router";
import type { Result } from "../../../../clients/typescript/types.ts";
import { vodbox } from "../../api.ts";
import { BASE } from "../../base.ts";
import { Chart } from "../../components/chart.tsx";
import { ErrorNotice } from "../../components/notice.tsx";
import { PageHead } from "../../components/page-head.tsx";
import { Time } from "../../components/time.tsx";
import { bitrate, count, duration } from "../../format.ts";
import { useResource } from "../../hooks/use-resource.ts";
import { useLanguage, useTexts } from "../../texts/texts.tsx";
import { ChannelStatus, Signal } from "./signal.tsx";
import { Targets } from "./targets.tsx";
import { texts } from "./texts.ts";

/** The server counts every five seconds. */
const REFRESH_MS = 10_000;
const SHOWN_MS = 3_600_000;

/** One channel: what the encoder sends, and who watches, over the last hour. */
export default function Channel() {
  const t = useTexts(texts);
  const { params } = useRoute();
  const id = Number(params.id);
  const { value, error, reload } = useResource(async () => {
    const from = new Date(Date.now() - SHOWN_MS).toISOString();
    const [channel, analytics] = await Promise.all([
      vodbox.getChannel({ id }),
      vodbox.getChannelAnalytics({ id, from, concurrency: "minute" }),
    ]);
    return { channel, analytics };
  }, [id]);
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === "visible" && reload(), REFRESH_MS);
    return () => clearInterval(timer);
  }, [reload]);
  if (error && !value) return <ErrorNotice error={error} onRetry={reload} />;
  if (!value) return <p>{t("loading")}</p>;
  const { channel, analytics } = value;
  return (
    <>
      <PageHead title={channel.name}>
        {channel.status === "live" && channel.playback_policy === "public" && (
          <a href={`${BASE}/watch/live/${channel.channel}`} target="_blank" rel="noreferrer">
            {t("openStream")}
          </a>
        )}
      </PageHead>
      <ErrorNotice error={error} onRetry={reload} />
      <Facts channel={channel} analytics={analytics} />
      <Targets channelId={channel.id} canChange={channel.revoked_at === null} />
      <Hour analytics={analytics} />
    </>
  );
}

type Analytics = Result<"getChannelAnalytics">;
const NONE: NonNullable<Analytics["concurrency"]> = [];

function Facts({ channel, analytics }: { channel: Result<"getChannel">; analytics: Analytics }) {
  const t = useTexts(texts);
  const { language } = useLanguage();
  return (
    <dl class="facts">
      <dt>{t("status")}</dt>
      <dd>
        <ChannelStatus channel={channel} />
      </dd>
      <dt>{t("path")}</dt>
      <dd>
        <code>{channel.path}</code>
      </dd>
      {channel.started_at !== null && (
        <>
          <dt>{t("since")}</dt>
          <dd>
            <Time at={channel.started_at} />
          </dd>
        </>
      )}
      {channel.health && (
        <>
          <dt>{t("signal")}</dt>
          <dd>
            <Signal health={channel.health} />
          </dd>
        </>
      )}
      <dt>{t("lastHour")}</dt>
      <dd>
        {duration(analytics.live_seconds)} {t("received")}, {t("atMost")} {count(analytics.peak_viewers, language)}{" "}
        {t("watching")}
      </dd>
    </dl>
  );
}

/** Viewers and bitrate by minute. */
function Hour({ analytics: { concurrency = NONE } }: { analytics: Analytics }) {
  const t = useTexts(texts);
  const { language } = useLanguage();
  const { xs, viewers, bitrates } = useMemo(
    () => ({
      xs: concurrency.map(({ start }) => Date.parse(start) / 1000),
      viewers: concurrency.map(({ peak_viewers }) => peak_viewers),
      bitrates: concurrency.map((minute) => minute.bitrate),
    }),
    [concurrency],
  );
  const formatX = useMemo(() => {
    const format = new Intl.DateTimeFormat(language, { timeStyle: "short" });
    return (seconds: number) => format.format(seconds * 1000);
  }, [language]);
  const formatCount = useMemo(() => (value: number) => count(value, language), [language]);
  const formatBitrate = useMemo(() => (value: number) => bitrate(value, language), [language]);
  const shared = { kind: "bars" as const, xs, isTime: true, formatX };
  return (
    <div class="halves">
      <section class="card-section" aria-labelledby="viewers">
        <h2 id="viewers">{t("viewersOfHour")}</h2>
        <Chart label={t("viewersOfHour")} {...shared} ys={viewers} formatY={formatCount} least={5} isWhole />
      </section>
      <section class="card-section" aria-labelledby="bitrate">
        <h2 id="bitrate">{t("bitrateOfHour")}</h2>
        <Chart label={t("bitrateOfHour")} {...shared} ys={bitrates} formatY={formatBitrate} least={100_000} />
      </section>
    </div>
  );
}
