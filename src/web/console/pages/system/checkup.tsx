import { useCallback, useEffect, useState } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { ConfirmDialog } from "#web/console/components/dialog.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { Time } from "#web/console/components/time.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Checkup as CheckupState } from "#web/console/types.ts";
import { Findings } from "./findings.tsx";
import { texts } from "./texts.ts";

const REFRESH_MS = 1000;

/** The full check: started here, followed, and its result. */
export function Checkup() {
  const t = useTexts(texts);
  const [checkup, setCheckup] = useState<CheckupState | null>(null);
  const [error, setError] = useState<unknown>(null);
  const [isAsking, setAsking] = useState(false);
  const load = useCallback(async () => {
    try {
      // None has run yet: no content.
      setCheckup((await vodbox.getCheckup()) ?? null);
    } catch (thrown) {
      setError(thrown);
    }
  }, []);
  const isRunning = checkup?.status === "running";
  useEffect(() => void load(), [load]);
  useEffect(() => {
    if (!isRunning) return;
    const timer = setInterval(load, REFRESH_MS);
    return () => clearInterval(timer);
  }, [isRunning, load]);
  const start = async (fix: boolean) => {
    setAsking(false);
    setError(null);
    try {
      setCheckup(await vodbox.startCheckup({ body: { fix } }));
    } catch (thrown) {
      setError(thrown);
    }
  };
  return (
    <section aria-labelledby="checkup">
      <div class="page-head">
        <h2 id="checkup">{t("checkup")}</h2>
        <div class="row">
          <button type="button" onClick={() => start(false)} disabled={isRunning}>
            {t("startCheckup")}
          </button>
          <button type="button" onClick={() => setAsking(true)} disabled={isRunning}>
            {t("fix")}
          </button>
        </div>
      </div>
      <p class="fine">{t("checkupHint")}</p>
      <ErrorNotice error={error} />
      <div aria-live="polite">{checkup ? <Result checkup={checkup} /> : <p>{t("noCheckup")}</p>}</div>
      {isAsking && (
        <ConfirmDialog text={t("fixQuestion")} onConfirm={() => start(true)} onClose={() => setAsking(false)} />
      )}
    </section>
  );
}

function Result({ checkup: { status, stage, objects, findings, finished_at } }: { checkup: CheckupState }) {
  const t = useTexts(texts);
  if (status === "running")
    return (
      <p>
        {t("stage")}: {stage} · {t("objects", { count: objects })}
      </p>
    );
  return (
    <>
      <p>
        <Time at={finished_at} /> {findings.every(({ ok }) => ok) && t("allWell")}
      </p>
      <Findings findings={findings} />
    </>
  );
}
