import { useState } from "preact/hooks";
import { CREATE_ORDER_PLAN_NAME } from "#build/client/enums.ts";
import { vodbox } from "#web/console/api.ts";
import { Badge } from "#web/console/components/badge.tsx";
import { Form, Select } from "#web/console/components/form.tsx";
import { ListView } from "#web/console/components/list-view.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { Table } from "#web/console/components/table.tsx";
import { Time } from "#web/console/components/time.tsx";
import { count, money, price } from "#web/console/format.ts";
import { useList } from "#web/console/hooks/use-list.ts";
import { useResource } from "#web/console/hooks/use-resource.ts";
import { useLanguage, useTexts } from "#web/console/texts/texts.tsx";
import { texts } from "./texts.ts";

type Props = { tenantId: number; month: string };

const METERS = {
  storage_bytes: ["storage", "gbMonths"],
  egress_bytes: ["delivered", "gigabytes"],
  transcoding_minutes: ["transcoded", "minutes"],
  live_minutes: ["receivedLive", "minutes"],
} as const;

/** What a tenant's month costs, item by item. */
export function Estimate({ tenantId, month }: Props) {
  const t = useTexts(texts);
  const { language } = useLanguage();
  const { value, error, reload } = useResource(
    () => vodbox.getBillingEstimate({ tenant_id: tenantId, month }),
    [tenantId, month],
  );
  return (
    <section aria-labelledby="estimate">
      <h2 id="estimate">{t("estimate")}</h2>
      <ErrorNotice error={error} onRetry={reload} />
      {value && (
        <>
          <Table
            items={value.line_items.map((item) => ({ id: item.meter, ...item }))}
            columns={[
              { title: t("item"), cell: ({ meter }) => t(METERS[meter][0]) },
              {
                title: t("used"),
                cell: ({ meter, quantity }) => `${count(quantity, language)} ${t(METERS[meter][1])}`,
              },
              { title: t("included"), cell: ({ included_quantity }) => count(included_quantity, language) },
              {
                title: t("unitPrice"),
                cell: ({ unit_price_minor }) => price(unit_price_minor, value.currency, language),
              },
              { title: t("amount"), cell: ({ amount_minor }) => money(amount_minor, value.currency, language) },
            ]}
          />
          <p>
            <strong>
              {t("total")}: {money(value.total_minor, value.currency, language)}
            </strong>
          </p>
        </>
      )}
    </section>
  );
}

const COLORS = { creating: "processing", pending: "processing", paid: "ready", expired: "queued" };

/** Orders of a plan, which are paid at the payment provider. */
export function Orders({ tenantId }: { tenantId: number }) {
  const t = useTexts(texts);
  const { language } = useLanguage();
  const [url, setUrl] = useState<string | null>(null);
  const list = useList(() => vodbox.listOrders({ tenant_id: tenantId }), [tenantId]);
  const order = async ({ plan_name }: Record<string, string>) => {
    const plan = plan_name as (typeof CREATE_ORDER_PLAN_NAME)[number];
    const { checkout_url } = await vodbox.createOrder({ body: { plan_name: plan, tenant_id: tenantId } });
    setUrl(checkout_url);
    list.reload();
  };
  return (
    <section aria-labelledby="orders">
      <h2 id="orders">{t("orders")}</h2>
      <div class="narrow">
        <Form submit={t("order")} onSubmit={order}>
          <Select
            label={t("plan")}
            name="plan_name"
            value="starter"
            options={CREATE_ORDER_PLAN_NAME.filter((plan) => plan !== "free").map(
              (plan) => [plan, plan] as [string, string],
            )}
          />
        </Form>
      </div>
      {url !== null && (
        <p class="notice" role="status">
          <a href={url} target="_blank" rel="noreferrer">
            {t("pay")}
          </a>
        </p>
      )}
      <ListView list={list} empty={t("noOrders")}>
        {(items) => (
          <Table
            items={items.map((one) => ({ id: one.order_id, ...one }))}
            columns={[
              { title: t("plan"), cell: ({ plan_name }) => plan_name },
              {
                title: t("amount"),
                cell: ({ amount_minor, currency }) => money(amount_minor, currency, language),
              },
              { title: t("status"), cell: ({ status }) => <Badge state={COLORS[status]} text={t(status)} /> },
              { title: t("created"), cell: ({ created_at }) => <Time at={created_at} /> },
              {
                title: t("actions"),
                cell: ({ status, checkout_url }) =>
                  status === "pending" &&
                  checkout_url && (
                    <a href={checkout_url} target="_blank" rel="noreferrer">
                      {t("pay")}
                    </a>
                  ),
              },
            ]}
          />
        )}
      </ListView>
    </section>
  );
}
