import { Building2 } from "lucide";
import { useState } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { pagePath } from "#web/console/base.ts";
import { Badge } from "#web/console/components/badge.tsx";
import { Dialog } from "#web/console/components/dialog.tsx";
import { Field, Form } from "#web/console/components/form.tsx";
import { ListView } from "#web/console/components/list-view.tsx";
import { PageHead } from "#web/console/components/page-head.tsx";
import { Table } from "#web/console/components/table.tsx";
import { Time } from "#web/console/components/time.tsx";
import { useList } from "#web/console/hooks/use-list.ts";
import { useTexts } from "#web/console/texts/texts.tsx";
import { texts } from "./texts.ts";

/** The operator's tenants. */
export default function Tenants() {
  const t = useTexts(texts);
  const [isNew, setNew] = useState(false);
  const list = useList(() => vodbox.listTenants(), []);
  const { reload } = list;
  const create = async ({ name = "", slug = "" }: Record<string, string>) => {
    await vodbox.createTenant({ body: { name, slug } });
    setNew(false);
    reload();
  };
  return (
    <>
      <PageHead title={t("tenants")}>
        <button type="button" class="primary" onClick={() => setNew(true)}>
          {t("newTenant")}
        </button>
      </PageHead>
      <ListView list={list} empty={t("noTenants")} icon={Building2}>
        {(items) => (
          <Table
            items={items}
            columns={[
              { title: t("name"), cell: ({ id, name }) => <a href={pagePath(`tenants/${id}`)}>{name}</a> },
              { title: t("slug"), cell: ({ slug }) => <code>{slug}</code> },
              { title: t("plan"), cell: ({ plan_name }) => plan_name },
              { title: t("status"), cell: ({ status }) => <Badge state={status} text={t(status)} /> },
              { title: t("created"), cell: ({ created_at }) => <Time at={created_at} /> },
            ]}
          />
        )}
      </ListView>
      {isNew && (
        <Dialog title={t("newTenant")} onClose={() => setNew(false)}>
          <Form submit={t("create")} onSubmit={create}>
            <Field label={t("name")} name="name" required />
            <Field label={t("slug")} name="slug" required />
          </Form>
        </Dialog>
      )}
    </>
  );
}
