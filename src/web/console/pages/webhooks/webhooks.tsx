import { Webhook } from "lucide";
import { useState } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { pagePath } from "#web/console/base.ts";
import { Dialog } from "#web/console/components/dialog.tsx";
import { Form } from "#web/console/components/form.tsx";
import { ListView } from "#web/console/components/list-view.tsx";
import { PageHead } from "#web/console/components/page-head.tsx";
import { ShownOnce } from "#web/console/components/shown-once.tsx";
import { Table } from "#web/console/components/table.tsx";
import { TenantSelect } from "#web/console/components/tenant-select.tsx";
import { Time } from "#web/console/components/time.tsx";
import { useList } from "#web/console/hooks/use-list.ts";
import { useSession } from "#web/console/session.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import { EndpointFields, endpointOf } from "./endpoint-fields.tsx";
import { EndpointState } from "./endpoint-state.tsx";
import { texts } from "./texts.ts";

/** The endpoints of the tenant, or of all tenants for the operator. */
export default function Webhooks() {
  const t = useTexts(texts);
  const { may, session } = useSession();
  const [isNew, setNew] = useState(false);
  const [secret, setSecret] = useState<string | null>(null);
  const list = useList(() => vodbox.listWebhooks(), []);
  const { reload } = list;
  const create = async (values: Record<string, string>) => {
    const body = { ...endpointOf(values, "svc"), tenant_id: session.tenant_id ?? Number(values.tenant_id) };
    setSecret((await vodbox.createWebhook({ body })).secret ?? null);
    setNew(false);
    reload();
  };
  return (
    <>
      <PageHead title={t("webhooks")}>
        {may("webhooks:write") && (
          <button type="button" class="primary" onClick={() => setNew(true)}>
            {t("newWebhook")}
          </button>
        )}
      </PageHead>
      {secret !== null && <ShownOnce text={t("secretShownOnce")} secret={secret} />}
      <ListView
        list={list}
        empty={t("noWebhooks")}
        icon={Webhook}
        action={
          may("webhooks:write") && (
            <button type="button" class="primary" onClick={() => setNew(true)}>
              {t("firstWebhook")}
            </button>
          )
        }
      >
        {(items) => (
          <Table
            items={items}
            columns={[
              { title: t("url"), cell: ({ id, url }) => <a href={pagePath(`webhooks/${id}`)}>{url}</a> },
              { title: t("status"), cell: (endpoint) => <EndpointState endpoint={endpoint} /> },
              { title: t("events"), cell: ({ event_types }) => event_types.join(", ") || t("allEvents") },
              { title: t("lastDelivery"), cell: ({ last_delivery_at }) => <Time at={last_delivery_at} /> },
            ]}
          />
        )}
      </ListView>
      {isNew && (
        <Dialog title={t("newWebhook")} onClose={() => setNew(false)}>
          <Form submit={t("create")} onSubmit={create}>
            <EndpointFields />
            {session.tenant_id === null && <TenantSelect />}
          </Form>
        </Dialog>
      )}
    </>
  );
}
