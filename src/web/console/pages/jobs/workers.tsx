import { useCallback } from "preact/hooks";
import type { Item } from "#clients/typescript/types.ts";
import { vodbox } from "#web/console/api.ts";
import { pagePath } from "#web/console/base.ts";
import { Badge } from "#web/console/components/badge.tsx";
import { ListView } from "#web/console/components/list-view.tsx";
import { Progress } from "#web/console/components/progress.tsx";
import { Table } from "#web/console/components/table.tsx";
import { Time } from "#web/console/components/time.tsx";
import { type LiveEvent, useLive } from "#web/console/hooks/live.ts";
import { useList } from "#web/console/hooks/use-list.ts";
import { useThrottled } from "#web/console/hooks/use-throttled.ts";
import { useTexts } from "#web/console/texts/texts.tsx";
import { texts } from "./texts.ts";

type Worker = Item<"listWorkers">;
const COLORS = { busy: "running", idle: "ready", offline: "queued" };
const RELOAD_MS = 2000;

/** The workers of the last week, with what they do now. */
export function Workers() {
  const t = useTexts(texts);
  const list = useList(() => vodbox.listWorkers(), []);
  const { reload, update } = list;
  const reloadSoon = useThrottled(reload, RELOAD_MS);
  const onEvent = useCallback(
    ({ type, data }: LiveEvent) => {
      if (type === "job.progress") {
        const { job_id, progress, stage } = data as { job_id: number; progress: number; stage: string | null };
        const change = (job: Worker["jobs"][number]) => (job.id === job_id ? { ...job, progress, stage } : job);
        update((workers) => workers.map((worker) => ({ ...worker, jobs: worker.jobs.map(change) })));
      } else if (type.startsWith("video.")) reloadSoon();
    },
    [reloadSoon, update],
  );
  useLive(onEvent, reload);
  return (
    <>
      <p>
        <button type="button" onClick={reload}>
          {t("refresh")}
        </button>
      </p>
      <ListView list={list} empty={t("noWorkers")}>
        {(items) => (
          <Table
            items={items}
            columns={[
              { title: t("worker"), cell: ({ worker_id }) => <code>{worker_id}</code> },
              { title: t("status"), cell: ({ state }) => <Badge state={COLORS[state]} text={t(state)} /> },
              { title: t("currentJob"), cell: ({ jobs }) => <CurrentJobs jobs={jobs} /> },
              { title: t("lastSeen"), cell: ({ last_seen_at }) => <Time at={last_seen_at} /> },
              { title: t("firstSeen"), cell: ({ created_at }) => <Time at={created_at} /> },
              { title: t("version"), cell: ({ version }) => version ?? "–" },
            ]}
          />
        )}
      </ListView>
    </>
  );
}

function CurrentJobs({ jobs }: { jobs: Worker["jobs"] }) {
  const t = useTexts(texts);
  if (jobs.length === 0) return <>–</>;
  return (
    <ul class="plain">
      {jobs.map(({ id, asset_id, title, progress, stage }) => (
        <li key={id}>
          <a href={pagePath(`assets/${asset_id}`)}>{title}</a>{" "}
          <Progress value={progress / 100} label={stage ?? t("progress")} />
        </li>
      ))}
    </ul>
  );
}
