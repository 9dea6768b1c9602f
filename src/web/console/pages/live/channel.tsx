import { useMemo } from "preact/hooks";
import { useLocation, useRoute } from "preact-iso/router";
import type { Result } from "#clients/typescript/types.ts";
import { vodbox } from "#web/console/api.ts";
import { BASE, pagePath } from "#web/console/base.ts";
import { Chart } from "#web/console/components/chart.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { PageHead } from "#web/console/components/page-head.tsx";
import { bitrate, count, duration } from "#web/console/format.ts";
import { useRefresh } from "#web/console/hooks/use-refresh.ts";
import { useResource } from "#web/console/hooks/use-resource.ts";
import { ownUrl } from "#web/console/own-url.ts";
import { useSession } from "#web/console/session.tsx";
import { useLanguage, useTexts } from "#web/console/texts/texts.tsx";
import type { LiveChannel } from "#web/console/types.ts";
import { ChannelSettings } from "./channel-settings.tsx";
import { Encoder } from "./encoder.tsx";
import { LiveClip } from "./live-clip.tsx";
import { pageUrl, ShareLinks } from "./share.tsx";
import { Signal, StateInWords } from "./signal.tsx";
import { Streams } from "./streams.tsx";
import { Targets } from "./targets.tsx";
import { texts } from "./texts.ts";
import { useChannel } from "./use-channel.ts";

/** The state is known a moment after an encoder has begun. */
const REFRESH_MS = 2000;
/** The server counts every five seconds. */
const COUNTED_MS = 10_000;
const SHOWN_MS = 3_600_000;

/** One channel: its player, what the encoder sends, who watches, and everything that can be set. */
export default function Channel() {
  const t = useTexts(texts);
  const { params } = useRoute();
  const { may } = useSession();
  const { route } = useLocation();
  const { value: channel, error, reload, set } = useChannel(Number(params.id), REFRESH_MS);
  if (error && !channel) return <ErrorNotice error={error} onRetry={reload} />;
  if (!channel) return <p>{t("loading")}</p>;
  const isUsable = channel.revoked_at === null;
  const mayChange = isUsable && may("assets:write");
  return (
    <>
      <PageHead title={channel.name} back="live">
        {isUsable && channel.playback_policy === "public" && (
          <a href={`${BASE}/watch/live/${channel.channel}`} target="_blank" rel="noreferrer">
            {t("openStream")}
          </a>
        )}
        {mayChange && (
          <button type="button" class="primary" onClick={() => route(pagePath(`live/${channel.id}/studio`))}>
            {t("goLive")}
          </button>
        )}
      </PageHead>
      <ErrorNotice error={error} onRetry={reload} />
      <div class="columns channel">
        <div>{isUsable && <ChannelPlayer channel={channel} />}</div>
        <div>
          <p class="on-air">
            <StateInWords channel={channel} />
          </p>
          <Facts channel={channel} />
          {isUsable && (
            <section aria-labelledby="share">
              <h2 id="share">{t("share")}</h2>
              <ShareLinks channel={channel} />
            </section>
          )}
        </div>
      </div>
      {mayChange && channel.status === "live" && <LiveClip channel={channel} />}
      {isUsable && <Encoder channel={channel} />}
      {mayChange && <ChannelSettings channel={channel} onChange={set} />}
      <Streams channelId={channel.id} />
      <Targets channelId={channel.id} canChange={isUsable} />
      <Hour id={channel.id} />
    </>
  );
}

/** The channel as its viewers see it, before a stream too. */
function ChannelPlayer({ channel }: { channel: LiveChannel }) {
  const t = useTexts(texts);
  const { id, playback_policy } = channel;
  // Not again with each refresh, which would begin playback again.
  const { value: url, error } = useResource(() => pageUrl(channel, "embed"), [id, playback_policy]);
  if (url === null) return error ? <ErrorNotice error={error} /> : <div class="stand-in">{t("loading")}</div>;
  const own = ownUrl(url, "/embed/");
  own.searchParams.set("disable_tracking", "1");
  return <iframe class="player" title={t("preview")} src={own.href} allow="autoplay; fullscreen" />;
}

type Analytics = Result<"getChannelAnalytics">;
const NONE: NonNullable<Analytics["concurrency"]> = [];

function Facts({ channel: { path, health } }: { channel: LiveChannel }) {
  const t = useTexts(texts);
  return (
    <dl class="facts">
      <dt>{t("path")}</dt>
      <dd>
        <code>{path}</code>
      </dd>
      {health && (
        <>
          <dt>{t("signal")}</dt>
          <dd>
            <Signal health={health} />
          </dd>
        </>
      )}
    </dl>
  );
}

/** Viewers and bitrate by minute. */
function Hour({ id }: { id: number }) {
  const t = useTexts(texts);
  const { language } = useLanguage();
  const { value, error, reload } = useResource(() => {
    const from = new Date(Date.now() - SHOWN_MS).toISOString();
    return vodbox.getChannelAnalytics({ id, from, concurrency: "minute" });
  }, [id]);
  useRefresh(reload, COUNTED_MS);
  const concurrency = value?.concurrency ?? NONE;
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
  if (!value) return error ? <ErrorNotice error={error} onRetry={reload} /> : null;
  const shared = { kind: "bars" as const, xs, isTime: true, formatX };
  return (
    <>
      <p>
        {t("lastHour")}: {duration(value.live_seconds)} {t("received")}, {t("atMost")}{" "}
        {count(value.peak_viewers, language)} {t("watching")}
      </p>
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
    </>
  );
}
