import { useId, useState } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { CopyButton } from "#web/console/components/copy-button.tsx";
import { ConfirmDialog } from "#web/console/components/dialog.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { ShownOnce } from "#web/console/components/shown-once.tsx";
import { useAttempt } from "#web/console/hooks/use-attempt.ts";
import { useSession } from "#web/console/session.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { LiveChannel } from "#web/console/types.ts";
import { texts } from "./texts.ts";

const NAMES = { rtmp_url: "RTMP", rtmps_url: "RTMPS", srt_url: "SRT", whip_url: "WHIP" } as const;
const PROTOCOLS = Object.keys(NAMES) as (keyof typeof NAMES)[];

/** Commands that publish a file or a test pattern; `key` is the stream key or its placeholder. */
function commands({ ingest, channel }: LiveChannel, key: string): [string, string][] {
  const encoded =
    "-c:v libx264 -preset veryfast -profile:v main -g 60 -keyint_min 60 -sc_threshold 0 -b:v 4M -c:a aac -b:a 128k";
  const rtmp = ingest.rtmps_url ?? ingest.rtmp_url;
  const ffmpeg = `ffmpeg -re -i input.mp4 ${encoded}`;
  const video = "videotestsrc is-live=true ! x264enc tune=zerolatency key-int-max=60 ! video/x-h264,profile=main";
  const srt = ingest.srt_url && `${ingest.srt_url}?streamid=publish:live/${channel}:key=${key}&latency=1000000`;
  return [
    ...(rtmp ? [["ffmpeg", `${ffmpeg} -f flv "${rtmp}/${channel}?key=${key}"`] as [string, string]] : []),
    ...(srt ? [["ffmpeg (SRT)", `${ffmpeg} -f mpegts "${srt}"`] as [string, string]] : []),
    ...(srt ? [["GStreamer", `gst-launch-1.0 ${video} ! mpegtsmux ! srtsink uri="${srt}"`] as [string, string]] : []),
  ];
}

/** Addresses, key and ready settings for an encoder. */
export function Encoder({ channel }: { channel: LiveChannel }) {
  const t = useTexts(texts);
  const { may } = useSession();
  const { failure, attempt } = useAttempt();
  const [key, setKey] = useState<string | null>(null);
  const [isAsking, setAsking] = useState(false);
  const given = PROTOCOLS.filter((protocol) => channel.ingest[protocol] !== null);
  const mayChange = may("assets:write") && channel.revoked_at === null;
  const rotate = () => {
    setAsking(false);
    return attempt(async () => setKey((await vodbox.rotateStreamKey({ id: channel.id })).stream_key));
  };
  return (
    <section class="card-section" aria-labelledby="encoder">
      <h2 id="encoder">{t("fromEncoder")}</h2>
      {given.length === 0 && <p>{t("encoderOff")}</p>}
      {given.map((protocol) => (
        <Address key={protocol} name={NAMES[protocol]} value={channel.ingest[protocol] as string} />
      ))}
      {(channel.ingest.rtmp_url ?? channel.ingest.rtmps_url) !== null && (
        <Address name={t("streamName")} value={`${channel.channel}?key=${key ?? t("ownKey")}`} />
      )}
      {channel.ingest.whip_url !== null && <Address name={t("bearerToken")} value={key ?? t("ownKey")} />}
      {key === null ? <p class="fine">{t("keyHint")}</p> : <ShownOnce text={t("keyShownOnce")} secret={key} />}
      {mayChange && (
        <button type="button" onClick={() => setAsking(true)}>
          {t("rotate")}
        </button>
      )}
      <ErrorNotice error={failure} />
      {given.includes("rtmp_url") && (
        <details>
          <summary>{t("encoderSettings", { name: "OBS" })}</summary>
          <p>{t("obsText")}</p>
          <p class="fine">{t("phoneText")}</p>
        </details>
      )}
      {commands(channel, key ?? t("ownKey")).map(([name, command]) => (
        <details key={name}>
          <summary>{t("encoderSettings", { name })}</summary>
          <pre>
            <code>{command}</code>
          </pre>
          <CopyButton text={command} />
        </details>
      ))}
      {isAsking && <ConfirmDialog text={t("rotateQuestion")} onConfirm={rotate} onClose={() => setAsking(false)} />}
    </section>
  );
}

function Address({ name, value }: { name: string; value: string }) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{name}</label>
      <span class="row address">
        <input id={id} readOnly value={value} />
        <CopyButton text={value} />
      </span>
    </div>
  );
}
