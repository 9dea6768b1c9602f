import { useState } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { ListView } from "#web/console/components/list-view.tsx";
import { Table } from "#web/console/components/table.tsx";
import { Time } from "#web/console/components/time.tsx";
import { useList } from "#web/console/hooks/use-list.ts";
import { useResource } from "#web/console/hooks/use-resource.ts";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { AuditEntry } from "#web/console/types.ts";
import { texts } from "./texts.ts";

/** Who changed what, newest first. */
export function AuditLog() {
  const t = useTexts(texts);
  const [tenant, setTenant] = useState("");
  const [day, setDay] = useState("");
  const tenants = useResource(async () => await vodbox.listTenants({ limit: 500 }), []);
  const list = useList(() => {
    const since = day && new Date(`${day}T00:00`).toISOString();
    return vodbox.listAuditEntries({ ...(tenant && { tenant_id: Number(tenant) }), ...(since && { since }) });
  }, [tenant, day]);
  return (
    <section aria-labelledby="audit">
      <div class="page-head">
        <h2 id="audit">{t("audit")}</h2>
        <div class="row">
          <label>
            {t("tenant")}{" "}
            <select value={tenant} onChange={({ currentTarget }) => setTenant(currentTarget.value)}>
              <option value="">{t("allTenants")}</option>
              {tenants.value?.map(({ id, name }) => (
                <option key={id} value={id}>
                  {name}
                </option>
              ))}
            </select>
          </label>
          <label>
            {t("since")} <input type="date" value={day} onChange={({ currentTarget }) => setDay(currentTarget.value)} />
          </label>
        </div>
      </div>
      <ListView list={list} empty={t("nothingAudited")}>
        {(items) => (
          <Table
            items={items}
            columns={[
              { title: t("time"), cell: ({ created_at }) => <Time at={created_at} /> },
              { title: t("actor"), cell: (entry) => actorOf(entry) },
              { title: t("action"), cell: ({ method, route }) => <code>{`${method} ${route}`}</code> },
              { title: t("target"), cell: ({ target_type, target_id }) => `${target_type} ${target_id ?? ""}` },
              { title: t("address"), cell: ({ address }) => address },
            ]}
          />
        )}
      </ListView>
    </section>
  );
}

function actorOf({ actor, key_id, user_id, operator }: AuditEntry): string {
  if (user_id !== null) return `user ${user_id}`;
  if (key_id !== null) return `key ${key_id}`;
  return operator === null ? actor : `${actor} (${operator})`;
}
