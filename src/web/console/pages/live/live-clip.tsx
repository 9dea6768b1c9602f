import { useState } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { pagePath } from "#web/console/base.ts";
import { Field } from "#web/console/components/form.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { duration } from "#web/console/format.ts";
import { useAttempt } from "#web/console/hooks/use-attempt.ts";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Asset, LiveChannel } from "#web/console/types.ts";
import { texts } from "./texts.ts";

const LAST_SECONDS = 30;

/** Makes a video of a part of the running stream. */
export function LiveClip({ channel }: { channel: LiveChannel }) {
  const t = useTexts(texts);
  const { failure, attempt } = useAttempt();
  const [title, setTitle] = useState("");
  const [start, setStart] = useState<number | null>(null);
  const [made, setMade] = useState<Asset | null>(null);
  const [isBusy, setBusy] = useState(false);
  const now = () => Math.max(0, (Date.now() - Date.parse(channel.started_at ?? "")) / 1000);
  const make = async (part: { last_seconds: number } | { start_seconds: number; end_seconds: number }) => {
    setBusy(true);
    setMade(null);
    const body = { ...part, ...(title.trim() && { title: title.trim() }) };
    if (await attempt(async () => setMade(await vodbox.createLiveClip({ id: channel.id, body })))) setStart(null);
    setBusy(false);
  };
  return (
    <section class="card-section" aria-labelledby="clip">
      <h2 id="clip">{t("clip")}</h2>
      <p class="fine">{t("clipHint")}</p>
      <Field label={t("clipTitle")} name="clip_title" onInput={setTitle} />
      <div class="row">
        <button type="button" disabled={isBusy} onClick={() => make({ last_seconds: LAST_SECONDS })}>
          {t("clipLast")}
        </button>
        {start === null ? (
          <button type="button" disabled={isBusy} onClick={() => setStart(now())}>
            {t("markIn")}
          </button>
        ) : (
          <button
            type="button"
            disabled={isBusy}
            onClick={() => make({ start_seconds: start, end_seconds: Math.max(start + 1, now()) })}
          >
            {t("markOut", { from: duration(start) })}
          </button>
        )}
        <span role="status">
          {made && (
            <a href={pagePath(`assets/${made.id}`)}>
              {t("clipMade")}: {made.title}
            </a>
          )}
        </span>
      </div>
      <ErrorNotice error={failure} />
    </section>
  );
}
