import { Fragment } from "preact";
import { useCallback, useState } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { Dialog } from "#web/console/components/dialog.tsx";
import { Select } from "#web/console/components/form.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { useToast } from "#web/console/components/toast.tsx";
import { type LiveEvent, useLive } from "#web/console/hooks/live.ts";
import { useResource } from "#web/console/hooks/use-resource.ts";
import { useThrottled } from "#web/console/hooks/use-throttled.ts";
import { useSession } from "#web/console/session.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Job } from "#web/console/types.ts";
import { texts } from "./texts.ts";

const RELOAD_MS = 3000;
const PRIORITIES = { low: -10, normal: 0, high: 10, urgent: 100 } as const;

type Props = { id: number; onClose(): void; onChange(): void };

/** A job with its log, which follows a running one. */
export function JobDialog({ id, onClose, onChange }: Props) {
  const t = useTexts(texts);
  const { isAdmin } = useSession();
  const { value: job, error, reload } = useResource(() => vodbox.getJob({ id }), [id]);
  const reloadSoon = useThrottled(reload, RELOAD_MS);
  const onEvent = useCallback(({ data }: LiveEvent) => void (data.job_id === id && reloadSoon()), [id, reloadSoon]);
  useLive(onEvent, reload);
  return (
    <Dialog title={t("job", { id })} onClose={onClose}>
      <ErrorNotice error={error} onRetry={reload} />
      {!job && !error && <p>{t("loading")}</p>}
      {job && <Facts job={job} />}
      {job && isAdmin && (job.status === "queued" || job.status === "running") && (
        <Priority
          job={job}
          onChange={() => {
            reload();
            onChange();
          }}
        />
      )}
      {job && isAdmin && (
        <>
          <h3>{t("log")}</h3>
          {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
          <section class="log-tail" tabIndex={0} aria-label={t("log")}>
            <pre>{job.log_tail || t("noLog")}</pre>
          </section>
        </>
      )}
      <div class="row end">
        <button type="button" onClick={onClose}>
          {t("close")}
        </button>
      </div>
    </Dialog>
  );
}

function Facts({ job }: { job: Job }) {
  const t = useTexts(texts);
  const captions = Object.entries(job.caption_errors ?? {});
  return (
    <dl class="facts">
      <dt>{t("title")}</dt>
      <dd>{job.asset?.title ?? job.asset_id}</dd>
      <dt>{t("worker")}</dt>
      <dd>{job.worker_id ?? "–"}</dd>
      <dt>{t("attempt")}</dt>
      <dd>{`${job.attempt} / ${job.max_attempts}`}</dd>
      <dt>{t("priority")}</dt>
      <dd>{job.priority}</dd>
      <dt>{t("profile")}</dt>
      <dd>{job.profile}</dd>
      {job.error && (
        <>
          <dt>{t("error")}</dt>
          <dd>
            <code>{job.error.code}</code> {job.error.message}
          </dd>
        </>
      )}
      {captions.map(([language, message]) => (
        <Fragment key={language}>
          <dt>{language}</dt>
          <dd>{message}</dd>
        </Fragment>
      ))}
    </dl>
  );
}

function Priority({ job, onChange }: { job: Job; onChange(): void }) {
  const t = useTexts(texts);
  const toast = useToast();
  const [error, setError] = useState<unknown>(null);
  const save = async (value: string) => {
    setError(null);
    try {
      await vodbox.prioritizeJob({ id: job.id, body: { priority: Number(value) } });
      toast(t("saved"));
    } catch (thrown) {
      setError(thrown);
    }
    onChange();
  };
  const named = Object.entries(PRIORITIES).map(([name, value]): [string, string] => [
    String(value),
    `${t(name as keyof typeof PRIORITIES)} (${value})`,
  ]);
  const own = String(job.priority);
  const options = named.some(([value]) => value === own) ? named : [[own, own] as [string, string], ...named];
  return (
    <>
      <Select label={t("priority")} name="priority" value={own} options={options} onChange={save} />
      <ErrorNotice error={error} />
    </>
  );
}
