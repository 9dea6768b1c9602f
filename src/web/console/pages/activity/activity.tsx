import { Activity as ActivityIcon } from "lucide";
import { useState } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { ListView } from "#web/console/components/list-view.tsx";
import { PageHead } from "#web/console/components/page-head.tsx";
import { Table } from "#web/console/components/table.tsx";
import { Time } from "#web/console/components/time.tsx";
import { useDebounced } from "#web/console/hooks/use-debounced.ts";
import { useList } from "#web/console/hooks/use-list.ts";
import { useTexts } from "#web/console/texts/texts.tsx";
import { texts } from "./texts.ts";

/** What people and keys changed in the tenant, newest first. */
export default function Activity() {
  const t = useTexts(texts);
  const [actor, setActor] = useState("");
  const [action, setAction] = useState("");
  const wanted = { actor: useDebounced(actor.trim(), 300), action: useDebounced(action.trim(), 300) };
  const list = useList(
    () =>
      vodbox.listActivity({
        ...(wanted.actor && { actor: wanted.actor }),
        ...(wanted.action && { action: wanted.action }),
      }),
    [wanted.actor, wanted.action],
  );
  return (
    <>
      <PageHead title={t("activity")}>
        <label>
          {t("actor")}{" "}
          <input
            type="search"
            value={actor}
            placeholder="ann@example.com"
            onInput={({ currentTarget }) => setActor(currentTarget.value)}
          />
        </label>
        <label>
          {t("action")}{" "}
          <input
            type="search"
            value={action}
            placeholder="update_asset"
            onInput={({ currentTarget }) => setAction(currentTarget.value)}
          />
        </label>
      </PageHead>
      <ListView list={list} empty={t("noActivity")} icon={ActivityIcon}>
        {(items) => (
          <Table
            items={items}
            columns={[
              { title: t("time"), cell: ({ created_at }) => <Time at={created_at} /> },
              { title: t("who"), cell: ({ actor: who }) => (who === "operator" ? t("operator") : who) },
              { title: t("what"), cell: (entry) => <code>{entry.action}</code> },
              { title: t("target"), cell: ({ target_type, target_id }) => `${target_type} ${target_id ?? ""}` },
              { title: t("fields"), cell: ({ fields }) => fields.join(", ") },
              { title: t("address"), cell: ({ address }) => address ?? "–" },
            ]}
          />
        )}
      </ListView>
    </>
  );
}
