import { useEffect, useRef, useState } from "preact/hooks";
import type { Params } from "#clients/typescript/types.ts";
import { MAX_JOINED } from "#model/join-limits.ts";
import { ConfirmDialog, Dialog } from "#web/console/components/dialog.tsx";
import { Field, Form, Select } from "#web/console/components/form.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { Progress as ProgressBar } from "#web/console/components/progress.tsx";
import { count as number } from "#web/console/format.ts";
import { useLanguage, useTexts } from "#web/console/texts/texts.tsx";
import type { Collection } from "#web/console/types.ts";
import { type Action, changeMany, type Progress } from "./change-many.ts";
import { JoinDialog } from "./join-dialog.tsx";
import { MoveDialog } from "./move-dialog.tsx";
import { NOTHING, type Selection, sizeOf } from "./selection.ts";
import { texts } from "./texts.ts";

type Running = { progress: Progress; stop(): void };

/** Runs one change at a time over a selection. `onEnd` is called when assets were changed. */
export function useBulk(params: Params<"listAssets">, total: number, onEnd: () => void) {
  const [running, setRunning] = useState<Running | null>(null);
  const isRunning = running?.progress.state === "running";
  const start = (selection: Selection, action: Action) => {
    if (isRunning) return;
    const size = sizeOf(selection, total);
    const work = changeMany({ selection, params, total: size }, action, (progress) =>
      setRunning({ progress, stop: () => work.stop() }),
    );
    void work.end.then(onEnd);
  };
  // Leaving the page ends it between two batches.
  useEffect(() => {
    if (!isRunning) return;
    const warn = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, [isRunning]);
  const stop = useRef<(() => void) | undefined>(undefined);
  stop.current = running?.stop;
  useEffect(() => () => stop.current?.(), []);
  return { running, isRunning, start, dismiss: () => setRunning(null) };
}

type Props = {
  selection: Selection;
  total: number;
  /** Null: there is no tree, because assets of all tenants are listed. */
  collections: Collection[] | null;
  bulk: ReturnType<typeof useBulk>;
  onSelect(selection: Selection): void;
};
type Open = "move" | "join" | "tag" | "policy" | "delete" | null;

/** What can be done with the selected assets, and how far it is. */
export function BulkBar({ selection, total, collections, bulk, onSelect }: Props) {
  const t = useTexts(texts);
  const { language } = useLanguage();
  const [open, setOpen] = useState<Open>(null);
  const size = sizeOf(selection, total);
  const shown = number(size, language);
  const close = () => setOpen(null);
  const start = (action: Action) => {
    close();
    bulk.start(selection, action);
  };
  if (bulk.running) return <Report running={bulk.running} onClose={bulk.dismiss} />;
  if (size === 0 && !selection.isAll) return null;
  return (
    <section class="bulk" aria-label={t("selection")}>
      <strong role="status">{t("selected", { count: shown })}</strong>
      {!selection.isAll && size < total && (
        <button type="button" class="quiet" onClick={() => onSelect({ isAll: true, ids: new Set() })}>
          {t("selectAll", { count: number(total, language) })}
        </button>
      )}
      <button type="button" class="quiet" onClick={() => onSelect(NOTHING)}>
        {t("clearSelection")}
      </button>
      <div class="row bulk-actions">
        {collections !== null && (
          <button type="button" onClick={() => setOpen("move")}>
            {t("moveTo")}
          </button>
        )}
        {!selection.isAll && size >= 2 && size <= MAX_JOINED && (
          <button type="button" onClick={() => setOpen("join")}>
            {t("join")}
          </button>
        )}
        <button type="button" onClick={() => setOpen("tag")}>
          {t("tag")}
        </button>
        <button type="button" onClick={() => setOpen("policy")}>
          {t("policy")}
        </button>
        <button type="button" onClick={() => start({ action: "retry" })}>
          {t("retry")}
        </button>
        <button type="button" class="danger" onClick={() => setOpen("delete")}>
          {t("delete")}
        </button>
      </div>
      {open === "move" && collections !== null && (
        <MoveDialog
          title={t("moveVideos", { count: shown })}
          collections={collections}
          none={t("noCollection")}
          onChoose={(collection_id) => start({ action: "move", collection_id })}
          onClose={close}
        />
      )}
      {open === "join" && <JoinDialog ids={[...selection.ids]} onClose={close} />}
      {open === "tag" && (
        <Dialog title={t("tagVideos", { count: shown })} onClose={close}>
          <Form
            submit={t("save")}
            onSubmit={async ({ name = "", value = "" }) =>
              start({ action: "tag", tags: { [name.trim()]: value === "" ? null : value } })
            }
          >
            <Field label={t("tagName")} name="name" required />
            <Field label={t("tagValue")} name="value" hint={t("tagHint")} />
          </Form>
        </Dialog>
      )}
      {open === "policy" && (
        <Dialog title={t("policyVideos", { count: shown })} onClose={close}>
          <Form
            submit={t("save")}
            onSubmit={async (values) =>
              start({ action: "policy", playback_policy: values.policy === "public" ? "public" : "signed" })
            }
          >
            <Select
              label={t("policy")}
              name="policy"
              options={[
                ["signed", t("signed")],
                ["public", t("public")],
              ]}
            />
          </Form>
        </Dialog>
      )}
      {open === "delete" && (
        <ConfirmDialog
          text={size === 1 ? t("deleteOne") : t("deleteVideos", { count: shown })}
          onConfirm={() => start({ action: "delete" })}
          onClose={close}
        />
      )}
    </section>
  );
}

function Report({ running: { progress, stop }, onClose }: { running: Running; onClose(): void }) {
  const t = useTexts(texts);
  const { language } = useLanguage();
  const { total, applied, refused, samples, state, error } = progress;
  const done = t("bulkDone", { count: number(applied, language), total: number(total, language) });
  return (
    <section class="bulk" aria-label={t("selection")}>
      {state === "running" && (
        <ProgressBar value={total === 0 ? 0 : (applied + refused) / total} label={t("progress")} />
      )}
      <span role="status">
        {done}
        {refused > 0 && ` ${t("bulkRefused", { count: number(refused, language) })}`}
        {state === "stopped" && ` ${t("bulkStopped")}`}
      </span>
      <div class="row bulk-actions">
        {state === "running" ? (
          <button type="button" onClick={stop}>
            {t("stop")}
          </button>
        ) : (
          <button type="button" onClick={onClose}>
            {t("close")}
          </button>
        )}
      </div>
      <ErrorNotice error={error} />
      {samples.length > 0 && (
        <ul class="fine bulk-samples">
          {samples.map(({ id, message }) => (
            <li key={id}>
              {id}: {message}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
