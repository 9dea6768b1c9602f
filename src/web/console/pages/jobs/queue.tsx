import { ListChecks } from "lucide";
import { useCallback, useState } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { pagePath } from "#web/console/base.ts";
import { Badge } from "#web/console/components/badge.tsx";
import { Elapsed } from "#web/console/components/elapsed.tsx";
import { ListView } from "#web/console/components/list-view.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { Progress } from "#web/console/components/progress.tsx";
import { Table } from "#web/console/components/table.tsx";
import { Time } from "#web/console/components/time.tsx";
import { type LiveEvent, useLive } from "#web/console/hooks/live.ts";
import { useList } from "#web/console/hooks/use-list.ts";
import { useThrottled } from "#web/console/hooks/use-throttled.ts";
import { useSession } from "#web/console/session.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Job } from "#web/console/types.ts";
import { JobDialog } from "./job-dialog.tsx";
import { texts } from "./texts.ts";

export const textOf = (status: Job["status"]) => (status === "canceled" ? "cancelled" : status);
const RELOAD_MS = 2000;

/** Jobs, newest first, as they change. */
export function Queue({ status }: { status: Job["status"] | "" }) {
  const t = useTexts(texts);
  const { isAdmin } = useSession();
  const [failure, setFailure] = useState<unknown>(null);
  const [openJob, setOpenJob] = useState<number | null>(null);
  const list = useList(() => vodbox.listJobs(status === "" ? {} : { status }), [status]);
  const { reload, update } = list;
  const reloadSoon = useThrottled(reload, RELOAD_MS);
  const onEvent = useCallback(
    ({ type, data }: LiveEvent) => {
      if (type === "job.progress") {
        const { job_id, progress, stage } = data as { job_id: number; progress: number; stage: string | null };
        update((jobs) => jobs.map((job) => (job.id === job_id ? { ...job, progress, stage } : job)));
      } else if (type.startsWith("video.job.") || type.startsWith("video.asset.")) reloadSoon();
    },
    [reloadSoon, update],
  );
  useLive(onEvent, reload);
  const act = async ({ id }: Job, action: "retry" | "cancel") => {
    setFailure(null);
    await (action === "retry" ? vodbox.retryJob({ id }) : vodbox.cancelJob({ id })).catch(setFailure);
    reload();
  };
  return (
    <>
      <ErrorNotice error={failure} />
      <ListView list={list} empty={t("noJobs")} icon={ListChecks}>
        {(items) => (
          <div class="wide">
            <Table
              items={items}
              columns={[
                {
                  title: t("title"),
                  cell: ({ asset_id, asset, created_at }) => (
                    <span class="two-lines">
                      <a href={pagePath(`assets/${asset_id}`)}>{asset?.title ?? String(asset_id)}</a>
                      <span class="fine">
                        <Time at={created_at} />
                      </span>
                    </span>
                  ),
                },
                { title: t("status"), cell: (job) => <Badge state={job.status} text={t(textOf(job.status))} /> },
                { title: t("progress"), cell: (job) => <JobProgress job={job} /> },
                {
                  title: t("worker"),
                  cell: ({ worker_id, attempt, max_attempts }) => (
                    <span class="two-lines">
                      {worker_id ?? "–"}
                      <span class="fine">{`${t("attempt")} ${attempt} / ${max_attempts}`}</span>
                    </span>
                  ),
                },
                {
                  title: t("waiting"),
                  cell: ({ created_at, started_at, finished_at }) => (
                    <Elapsed from={created_at} to={started_at ?? finished_at} />
                  ),
                },
                { title: t("runtime"), cell: (job) => <RunningTime job={job} /> },
                {
                  title: t("actions"),
                  cell: (job) => (
                    <div class="row">
                      {isAdmin && <Action job={job} onAct={act} />}
                      <button type="button" onClick={() => setOpenJob(job.id)}>
                        {t("details")}
                      </button>
                    </div>
                  ),
                },
              ]}
            />
          </div>
        )}
      </ListView>
      {openJob !== null && <JobDialog id={openJob} onClose={() => setOpenJob(null)} onChange={reload} />}
    </>
  );
}

function JobProgress({ job: { status, stage, progress, error } }: { job: Job }) {
  const t = useTexts(texts);
  if (status === "running")
    return (
      <span class="two-lines">
        <Progress value={progress / 100} label={stage ?? t("progress")} />
        <span class="fine">
          {progress} % {stage}
        </span>
      </span>
    );
  return <>{error ? error.message : "–"}</>;
}

/** The time of the running or last attempt; a job that waits for its next attempt has none. */
const RunningTime = ({ job: { status, started_at, finished_at } }: { job: Job }) =>
  status === "queued" ? <>–</> : <Elapsed from={started_at} to={status === "running" ? null : finished_at} />;

function Action({ job, onAct }: { job: Job; onAct(job: Job, action: "retry" | "cancel"): void }) {
  const t = useTexts(texts);
  if (job.status === "completed") return null;
  const action = job.status === "queued" || job.status === "running" ? "cancel" : "retry";
  return (
    <button type="button" onClick={() => onAct(job, action)}>
      {t(action)}
    </button>
  );
}
