import { useState } from "preact/hooks";
import type { Result } from "#clients/typescript/types.ts";
import { vodbox } from "#web/console/api.ts";
import { Badge } from "#web/console/components/badge.tsx";
import { ConfirmDialog, Dialog } from "#web/console/components/dialog.tsx";
import { Field, Form } from "#web/console/components/form.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { Table } from "#web/console/components/table.tsx";
import { bytes, count } from "#web/console/format.ts";
import { useRefresh } from "#web/console/hooks/use-refresh.ts";
import { useResource } from "#web/console/hooks/use-resource.ts";
import { useSession } from "#web/console/session.tsx";
import { useLanguage, useTexts } from "#web/console/texts/texts.tsx";
import { texts } from "./texts.ts";

const REFRESH_MS = 5000;
/** The API refuses more. */
const MAX_TARGETS = 5;
const COLORS = { idle: "queued", connecting: "processing", live: "ready", failed: "errored" };

type Target = Result<"getSimulcastTarget">;

/** Other servers to which the streams of a channel are sent. */
export function Targets({ channelId: id, canChange }: { channelId: number; canChange: boolean }) {
  const t = useTexts(texts);
  const { may } = useSession();
  const [isNew, setNew] = useState(false);
  const [removed, setRemoved] = useState<Target | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const { value: targets, error, reload } = useResource(() => vodbox.listSimulcastTargets({ id }), [id]);
  useRefresh(reload, REFRESH_MS);
  const mayChange = canChange && may("assets:write");
  const trying = async (work: () => Promise<unknown>) => {
    setFailure(null);
    try {
      await work();
    } catch (thrown) {
      setFailure(thrown);
    }
    reload();
  };
  const create = async ({ url = "", stream_key, name }: Record<string, string>) => {
    const body = { url, ...(stream_key && { stream_key }), ...(name && { name }) };
    await vodbox.createSimulcastTarget({ id, body });
    setNew(false);
    reload();
  };
  const remove = ({ id: target_id }: Target) => {
    setRemoved(null);
    return trying(() => vodbox.deleteSimulcastTarget({ id, target_id }));
  };
  const toggle = ({ id: target_id, enabled }: Target) =>
    trying(() => vodbox.updateSimulcastTarget({ id, target_id, body: { enabled: !enabled } }));
  return (
    <section class="card-section" aria-labelledby="targets">
      <div class="page-head">
        <h2 id="targets">{t("targets")}</h2>
        {mayChange && targets !== null && targets.length < MAX_TARGETS && (
          <button type="button" onClick={() => setNew(true)}>
            {t("newTarget")}
          </button>
        )}
      </div>
      <ErrorNotice error={failure ?? error} onRetry={reload} />
      {targets?.length === 0 && <p class="empty">{t("noTargets")}</p>}
      {targets !== null && targets.length > 0 && (
        <Table
          items={targets}
          columns={[
            { title: t("name"), cell: ({ name }) => name },
            { title: t("url"), cell: ({ url }) => <code>{url}</code> },
            { title: t("status"), cell: (target) => <TargetStatus target={target} /> },
            {
              title: t("actions"),
              cell: (target) =>
                mayChange && (
                  <span class="row">
                    <button type="button" onClick={() => toggle(target)}>
                      {target.enabled ? t("disable") : t("enable")}
                    </button>
                    <button type="button" onClick={() => setRemoved(target)}>
                      {t("delete")}
                    </button>
                  </span>
                ),
            },
          ]}
        />
      )}
      {isNew && (
        <Dialog title={t("newTarget")} onClose={() => setNew(false)}>
          <Form submit={t("create")} onSubmit={create}>
            <Field label={t("url")} name="url" required hint={t("targetUrlHint")} />
            <Field label={t("streamKey")} name="stream_key" type="password" autocomplete="off" />
            <Field label={t("name")} name="name" />
          </Form>
        </Dialog>
      )}
      {removed && (
        <ConfirmDialog
          text={t("deleteTargetQuestion")}
          onConfirm={() => remove(removed)}
          onClose={() => setRemoved(null)}
        />
      )}
    </section>
  );
}

function TargetStatus({ target }: { target: Target }) {
  const t = useTexts(texts);
  const { language } = useLanguage();
  const { enabled, status, error, sent_bytes, dropped_frames } = target;
  if (!enabled) return <Badge state="queued" text={t("disabled")} />;
  return (
    <>
      {status === null ? t("otherServer") : <Badge state={COLORS[status]} text={t(`target_${status}`)} />}
      {sent_bytes > 0 && ` ${bytes(sent_bytes, language)}`}
      {dropped_frames > 0 && `, ${count(dropped_frames, language)} ${t("droppedFrames")}`}
      {error !== null && (
        <p>
          <small>{error}</small>
        </p>
      )}
    </>
  );
}
