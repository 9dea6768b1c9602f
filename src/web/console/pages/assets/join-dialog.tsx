import { useState } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { vodbox } from "#web/console/api.ts";
import { pagePath } from "#web/console/base.ts";
import { Dialog } from "#web/console/components/dialog.tsx";
import { Field, Form } from "#web/console/components/form.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { duration } from "#web/console/format.ts";
import { useResource } from "#web/console/hooks/use-resource.ts";
import { useTexts } from "#web/console/texts/texts.tsx";
import { texts } from "./texts.ts";

type Props = {
  /** In the order in which they were selected. */
  ids: readonly number[];
  onClose(): void;
};

/** Joins videos one after another into a new one, in an order that can be changed, and opens it. */
export function JoinDialog({ ids, onClose }: Props) {
  const t = useTexts(texts);
  const { route } = useLocation();
  const [order, setOrder] = useState(ids);
  const loaded = useResource(() => Promise.all(ids.map((id) => vodbox.getAsset({ id }))), []);
  const parts = new Map(loaded.value?.map((asset) => [asset.id, asset]));
  const move = (from: number, to: number) => setOrder(order.toSpliced(from, 1).toSpliced(to, 0, order[from] as number));
  const join = async ({ title = "" }: Record<string, string>) => {
    const named = title.trim() === "" ? {} : { title: title.trim() };
    const { id } = await vodbox.joinAssets({ body: { asset_ids: [...order], ...named } });
    route(pagePath(`assets/${id}`));
  };
  return (
    <Dialog title={t("joinVideos", { count: String(ids.length) })} onClose={onClose}>
      <p class="fine">{t("joinHint")}</p>
      <ErrorNotice error={loaded.error} onRetry={loaded.reload} />
      <ol class="ordered">
        {order.map((id, index) => (
          <li key={id} class="row">
            <span>
              {parts.get(id)?.title ?? id}{" "}
              <span class="fine">{parts.has(id) && duration(parts.get(id)?.duration_seconds ?? 0)}</span>
            </span>
            <button
              type="button"
              class="quiet"
              aria-label={t("earlier", { name: parts.get(id)?.title ?? String(id) })}
              disabled={index === 0}
              onClick={() => move(index, index - 1)}
            >
              ↑
            </button>
            <button
              type="button"
              class="quiet"
              aria-label={t("later", { name: parts.get(id)?.title ?? String(id) })}
              disabled={index === order.length - 1}
              onClick={() => move(index, index + 1)}
            >
              ↓
            </button>
          </li>
        ))}
      </ol>
      <Form submit={t("join")} onSubmit={join}>
        <Field label={t("joinedTitle")} name="title" hint={t("joinedTitleHint")} />
      </Form>
      <div class="row end">
        <button type="button" onClick={onClose}>
          {t("cancel")}
        </button>
      </div>
    </Dialog>
  );
}
