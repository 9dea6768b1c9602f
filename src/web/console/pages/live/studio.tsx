import { useEffect, useRef, useState } from "preact/hooks";
import { useRoute } from "preact-iso/router";
import { vodbox } from "#web/console/api.ts";
import { pagePath } from "#web/console/base.ts";
import { Field, Select } from "#web/console/components/form.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { PageHead } from "#web/console/components/page-head.tsx";
import { useUnsaved } from "#web/console/hooks/use-unsaved.ts";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { LiveChannel } from "#web/console/types.ts";
import { Encoder } from "./encoder.tsx";
import { ShareLinks } from "./share.tsx";
import { Signal, StateInWords } from "./signal.tsx";
import { Level } from "./studio/level.tsx";
import { mayRecord, mayShareScreen, SOURCES, type Source } from "./studio/recording.ts";
import { useStudio } from "./studio/use-studio.ts";
import { texts } from "./texts.ts";
import { useChannel } from "./use-channel.ts";

const REFRESH_MS = 2000;
const NONE = "none";

/** Going live: from this browser, or with an encoder. */
export default function StudioPage() {
  const t = useTexts(texts);
  const { params } = useRoute();
  const { value: channel, error, reload, set } = useChannel(Number(params.id), REFRESH_MS);
  if (error && !channel) return <ErrorNotice error={error} onRetry={reload} />;
  if (!channel) return <p>{t("loading")}</p>;
  return (
    <>
      <PageHead title={`${t("goLive")}: ${channel.name}`} back={`live/${channel.id}`}>
        <a href={pagePath(`live/${channel.id}`)}>{t("channel")}</a>
      </PageHead>
      <ErrorNotice error={error} onRetry={reload} />
      {channel.ingest.whip_url === null && <p class="notice">{t("whipOff")}</p>}
      {channel.ingest.whip_url !== null && !mayRecord() && <p class="notice">{t("insecure")}</p>}
      {channel.ingest.whip_url !== null && mayRecord() && <Studio channel={channel} onChange={set} />}
      <Encoder channel={channel} />
    </>
  );
}

type Props = { channel: LiveChannel; onChange(channel: LiveChannel): void };

function Studio({ channel, onChange }: Props) {
  const t = useTexts(texts);
  const { choice, choose, devices, recording, state, failure, start, stop } = useStudio(channel);
  const [isMirrored, setMirrored] = useState(true);
  const isSending = state !== "off";
  useUnsaved(isSending);
  const isTaken = !isSending && channel.status === "live" && !channel.takeover;
  const source: [string, string][] = SOURCES.filter((one) => one === "camera" || mayShareScreen()).map((one) => [
    one,
    t(`source_${one}`),
  ]);
  const listed = (all: MediaDeviceInfo[]): [string, string][] => [
    ["", t("defaultDevice")],
    ...all.map(({ deviceId, label }): [string, string] => [deviceId, label]),
  ];
  const rename = async (name: string) => {
    if (name.trim() !== "" && name !== channel.name)
      onChange(await vodbox.updateChannel({ id: channel.id, body: { name } }));
  };
  return (
    <div class="columns studio">
      <div>
        <StreamPreview stream={recording?.stream ?? null} isMirrored={isMirrored && choice.source === "camera"} />
        {recording && <Level stream={recording.stream} />}
        <ErrorNotice error={failure && said(failure, t)} />
        <div class="row">
          {isSending ? (
            <button type="button" class="danger" onClick={stop}>
              {t("endStream")}
            </button>
          ) : (
            <button type="button" class="primary" disabled={isTaken} onClick={start}>
              {t("goLive")}
            </button>
          )}
          <span role="status">{t(`state_${state}`)}</span>
        </div>
        {isTaken && <p class="notice">{t("encoderSends")}</p>}
      </div>
      <div>
        <p class="on-air">
          <StateInWords channel={channel} />
        </p>
        {channel.health && (
          <p>
            <Signal health={channel.health} />
          </p>
        )}
        <ShareLinks channel={channel} />
        <div class="controls">
          <Title name={channel.name} onChange={rename} />
          <Select
            label={t("source")}
            name="source"
            value={choice.source}
            options={source}
            onChange={(value) => choose({ source: value as Source })}
          />
          {choice.source !== "screen" && (
            <Select
              label={t("camera")}
              name="camera"
              value={choice.camera}
              options={listed(devices.cameras)}
              onChange={(camera) => choose({ camera })}
            />
          )}
          <Select
            label={t("microphone")}
            name="microphone"
            value={choice.microphone ?? NONE}
            options={[
              ...listed(devices.microphones),
              [NONE, choice.source === "camera" ? t("noMicrophoneCamera") : t("noMicrophone")],
            ]}
            onChange={(value) => choose({ microphone: value === NONE ? null : value })}
          />
          {choice.source === "camera" && (
            <label class="row">
              <input
                type="checkbox"
                checked={isMirrored}
                onChange={({ currentTarget }) => setMirrored(currentTarget.checked)}
              />
              {t("mirror")}
            </label>
          )}
        </div>
      </div>
    </div>
  );
}

/** What the camera or the screen shows. */
function StreamPreview({ stream, isMirrored }: { stream: MediaStream | null; isMirrored: boolean }) {
  const t = useTexts(texts);
  const video = useRef<HTMLVideoElement>(null);
  useEffect(() => {
    if (video.current) video.current.srcObject = stream;
  }, [stream]);
  return (
    <video
      ref={video}
      class={isMirrored ? "player mirrored" : "player"}
      aria-label={t("preview")}
      autoplay
      muted
      playsInline
    />
  );
}

function Title({ name, onChange }: { name: string; onChange(name: string): Promise<void> }) {
  const t = useTexts(texts);
  const [typed, setTyped] = useState(name);
  const [error, setError] = useState<unknown>(null);
  return (
    // The field's own event, because a field without a form has no other end.
    <div onFocusOut={() => onChange(typed).then(() => setError(null), setError)}>
      <Field label={t("streamTitle")} name="title" value={name} hint={t("streamTitleHint")} onInput={setTyped} />
      <ErrorNotice error={error} />
    </div>
  );
}

/** A browser's errors have no words for people. */
function said(error: unknown, t: ReturnType<typeof useTexts<typeof texts.en>>): unknown {
  const { name } = error as Error;
  if (name === "NotAllowedError") return new Error(t("refusedByBrowser"));
  return name === "NotFoundError" || name === "OverconstrainedError" ? new Error(t("noDevice")) : error;
}
