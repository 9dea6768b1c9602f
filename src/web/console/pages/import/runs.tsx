import { useState } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { Badge } from "#web/console/components/badge.tsx";
import { Dialog } from "#web/console/components/dialog.tsx";
import { ListView } from "#web/console/components/list-view.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { Progress } from "#web/console/components/progress.tsx";
import { Table } from "#web/console/components/table.tsx";
import { Time } from "#web/console/components/time.tsx";
import { bytes } from "#web/console/format.ts";
import { useList } from "#web/console/hooks/use-list.ts";
import { useRefresh } from "#web/console/hooks/use-refresh.ts";
import { useResource } from "#web/console/hooks/use-resource.ts";
import { useLanguage, useTexts } from "#web/console/texts/texts.tsx";
import type { ImportRun } from "#web/console/types.ts";
import { nameOf } from "./sources.ts";
import { texts } from "./texts.ts";

const REFRESH_MS = 2000;
const COLORS = { running: "processing", completed: "ready", failed: "errored", interrupted: "draft" } as const;
const doneOf = ({ imported, unchanged, failed }: ImportRun) => imported + unchanged + failed;

/** The newest imports of the tenant, or of all tenants for the operator, with their progress. */
export function Runs() {
  const t = useTexts(texts);
  const { language } = useLanguage();
  const [opened, setOpened] = useState<ImportRun | null>(null);
  const list = useList(() => vodbox.listImportRuns(), []);
  useRefresh(list.reload, REFRESH_MS);
  return (
    <section aria-labelledby="runs">
      <h2 id="runs">{t("runs")}</h2>
      <ListView list={list} empty={t("noRuns")}>
        {(items) => (
          <Table
            items={items}
            columns={[
              { title: t("source"), cell: (run) => run.source ?? nameOf(run.provider, t) },
              { title: t("status"), cell: (run) => <State run={run} /> },
              { title: t("progress"), cell: (run) => <Done run={run} /> },
              { title: t("moved"), cell: (run) => bytes(run.bytes, language) },
              { title: t("began"), cell: (run) => <Time at={run.created_at} /> },
              {
                title: t("problems"),
                cell: (run) =>
                  (run.problem_count > 0 || run.error !== null) && (
                    <button type="button" onClick={() => setOpened(run)}>
                      {t("problemsCount", { count: Math.max(run.problem_count, 1) })}
                    </button>
                  ),
              },
            ]}
          />
        )}
      </ListView>
      {opened && <Problems run={opened} onClose={() => setOpened(null)} />}
    </section>
  );
}

function State({ run: { status } }: { run: ImportRun }) {
  const t = useTexts(texts);
  return (
    <>
      <Badge state={COLORS[status]} text={t(status)} />
      {status === "interrupted" && <p class="fine">{t("interruptedHint")}</p>}
    </>
  );
}

function Done({ run }: { run: ImportRun }) {
  const t = useTexts(texts);
  const text = t("progressOf", { done: doneOf(run), total: run.total });
  return (
    <>
      {run.status === "running" && <Progress value={doneOf(run) / Math.max(1, run.total)} label={t("progress")} />}
      <p class="fine">
        {text}
        {run.encoding > 0 && `, ${t("encodingCount", { count: run.encoding })}`}
      </p>
    </>
  );
}

function Problems({ run, onClose }: { run: ImportRun; onClose(): void }) {
  const t = useTexts(texts);
  const { value, error } = useResource(() => vodbox.getImportRun({ id: run.id }), [run.id]);
  const problems = value?.problems ?? [];
  return (
    <Dialog title={t("problemsOf", { name: nameOf(run.provider, t) })} onClose={onClose}>
      <ErrorNotice error={error} />
      {run.error !== null && <p>{run.error}</p>}
      {problems.length > 0 && (
        <Table
          items={problems.map((problem, id) => ({ ...problem, id }))}
          columns={[
            { title: t("video"), cell: ({ title, source_id }) => title || source_id },
            { title: t("reason"), cell: ({ reason }) => reason },
          ]}
        />
      )}
      {problems.length < run.problem_count && value !== null && (
        <p class="fine">{t("listed", { count: problems.length, total: run.problem_count })}</p>
      )}
      <div class="row end">
        <button type="button" onClick={onClose}>
          {t("close")}
        </button>
      </div>
    </Dialog>
  );
}
