import { Badge } from "#web/console/components/badge.tsx";
import { Elapsed } from "#web/console/components/elapsed.tsx";
import { bitrate, count } from "#web/console/format.ts";
import { useLanguage, useTexts } from "#web/console/texts/texts.tsx";
import type { LiveChannel } from "#web/console/types.ts";
import { texts } from "./texts.ts";

/** Whether a channel can be used, and whether it is live. */
export function ChannelStatus({ channel: { status, viewers, revoked_at } }: { channel: LiveChannel }) {
  const t = useTexts(texts);
  const { language } = useLanguage();
  if (revoked_at !== null) return <Badge state="errored" text={t("revoked")} />;
  if (status === "idle") return <Badge state="ready" text={t("active")} />;
  return <Badge state="running" text={`${t("onAir")} · ${count(viewers, language)} ${t("watching")}`} />;
}

/** The state of a channel as a sentence, which counts along. */
export function StateInWords({ channel }: { channel: LiveChannel }) {
  const t = useTexts(texts);
  const { language } = useLanguage();
  if (channel.status === "idle" || channel.revoked_at !== null)
    return channel.revoked_at === null ? <span>{t("waiting")}</span> : <ChannelStatus channel={channel} />;
  return (
    <>
      <Badge state="running" text={t("onAir")} /> <Elapsed from={channel.started_at} to={null} /> ·{" "}
      {count(channel.viewers, language)} {t("watching")}
    </>
  );
}

/** What the encoder sends, and what to change about it. */
export function Signal({ health }: { health: NonNullable<LiveChannel["health"]> }) {
  const t = useTexts(texts);
  const { language } = useLanguage();
  const { frame_rate, dropped_frames, keyframe_seconds, advice, warnings } = health;
  const parts = [
    bitrate(health.bitrate, language),
    frame_rate !== null && `${count(frame_rate, language)} ${t("framesPerSecond")}`,
    dropped_frames !== null && dropped_frames > 0 && `${count(dropped_frames, language)} ${t("framesMissing")}`,
    keyframe_seconds !== null && `${t("keyframes")} ${count(keyframe_seconds, language)} s`,
  ];
  return (
    <>
      {parts.filter(Boolean).join(", ")}
      {[...advice, ...warnings.map(({ message }) => message)].map((text) => (
        <p key={text}>
          <small>{text}</small>
        </p>
      ))}
    </>
  );
}
