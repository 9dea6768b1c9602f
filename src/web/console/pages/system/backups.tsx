import { useEffect, useState } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { BASE } from "#web/console/base.ts";
import { ConfirmDialog } from "#web/console/components/dialog.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { Table } from "#web/console/components/table.tsx";
import { Time } from "#web/console/components/time.tsx";
import { bytes } from "#web/console/format.ts";
import { useAttempt } from "#web/console/hooks/use-attempt.ts";
import { useResource } from "#web/console/hooks/use-resource.ts";
import { useLanguage, useTexts } from "#web/console/texts/texts.tsx";
import { Replica } from "./replica.tsx";
import { texts } from "./texts.ts";

const REFRESH_MS = 1000;

/** Archives in the data directory: make one, download it, delete it. */
export function Backups() {
  const t = useTexts(texts);
  const { language } = useLanguage();
  const { failure, attempt } = useAttempt();
  const [withObjects, setWithObjects] = useState(false);
  const [removed, setRemoved] = useState<string | null>(null);
  const { value, error, reload } = useResource(() => vodbox.listBackups(), []);
  const last = value?.last;
  const isRunning = last?.status === "running";
  useEffect(() => {
    if (!isRunning) return;
    const timer = setInterval(reload, REFRESH_MS);
    return () => clearInterval(timer);
  }, [isRunning, reload]);
  return (
    <section aria-labelledby="backup">
      <div class="page-head">
        <h2 id="backup">{t("backup")}</h2>
        <div class="row">
          <label class="check">
            <input
              type="checkbox"
              checked={withObjects}
              onChange={({ currentTarget }) => setWithObjects(currentTarget.checked)}
            />{" "}
            {t("withObjects")}
          </label>
          <button
            type="button"
            class="primary"
            disabled={isRunning}
            onClick={async () => {
              await attempt(() => vodbox.startBackup({ body: { objects: withObjects } }));
              reload();
            }}
          >
            {t("backUp")}
          </button>
        </div>
      </div>
      <p class="fine">{t("backupHint")}</p>
      <Replica />
      <ErrorNotice error={error ?? failure} onRetry={reload} />
      <div aria-live="polite">
        {isRunning && <p>{t("backupRuns", { size: bytes(last.bytes, language) })}</p>}
        {last?.status === "failed" && <ErrorNotice error={last.error} />}
      </div>
      {value?.backups.length === 0 && <p class="empty">{t("noBackups")}</p>}
      {value && value.backups.length > 0 && (
        <Table
          items={value.backups.map((one) => ({ id: one.name, ...one }))}
          columns={[
            {
              title: t("file"),
              cell: ({ name }) => (
                <a href={`${BASE}/api/v1/admin/backups/${name}`} download={name}>
                  {name}
                </a>
              ),
            },
            { title: t("size"), cell: (one) => bytes(one.bytes, language) },
            { title: t("created"), cell: ({ created_at }) => <Time at={created_at} /> },
            {
              title: t("actions"),
              cell: ({ name }) => (
                <button type="button" onClick={() => setRemoved(name)}>
                  {t("delete")}
                </button>
              ),
            },
          ]}
        />
      )}
      {removed && (
        <ConfirmDialog
          text={t("deleteBackup", { name: removed })}
          onConfirm={async () => {
            setRemoved(null);
            await attempt(() => vodbox.deleteBackup({ name: removed }));
            reload();
          }}
          onClose={() => setRemoved(null)}
        />
      )}
    </section>
  );
}
