import { useState } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { PageHead } from "#web/console/components/page-head.tsx";
import { Table } from "#web/console/components/table.tsx";
import { bytes, count, money } from "#web/console/format.ts";
import { useList } from "#web/console/hooks/use-list.ts";
import { useSession } from "#web/console/session.tsx";
import { useLanguage, useTexts } from "#web/console/texts/texts.tsx";
import { Estimate, Orders } from "./billing.tsx";
import { texts } from "./texts.ts";

const thisMonth = () => new Date().toISOString().slice(0, 7);

/** What a tenant, or each tenant, used in a month, and what it costs. */
export default function Usage() {
  const t = useTexts(texts);
  const { language } = useLanguage();
  const { session } = useSession();
  const [month, setMonth] = useState(thisMonth());
  const { items, isLoading, error, hasMore, loadMore, reload } = useList(() => vodbox.getUsage({ month }), [month]);
  const rows = items.map((summary) => ({ id: summary.tenant_id, ...summary }));
  return (
    <>
      <PageHead title={t("usage")}>
        <label>
          {t("month")}{" "}
          <input
            type="month"
            value={month}
            max={thisMonth()}
            required
            onChange={({ currentTarget }) => currentTarget.value && setMonth(currentTarget.value)}
          />
        </label>
      </PageHead>
      <p class="fine">{t("storageHint")}</p>
      <ErrorNotice error={error} onRetry={reload} />
      {rows.length > 0 && (
        <Table
          items={rows}
          columns={[
            { title: t("tenant"), cell: ({ tenant }) => tenant },
            { title: t("plan"), cell: ({ plan_name }) => plan_name },
            { title: t("storage"), cell: ({ storage_bytes }) => bytes(storage_bytes, language) },
            { title: t("delivered"), cell: ({ egress_bytes }) => bytes(egress_bytes, language) },
            {
              title: t("transcoded"),
              cell: ({ transcoding_minutes }) => `${count(transcoding_minutes, language)} ${t("minutes")}`,
            },
            {
              title: t("receivedLive"),
              cell: ({ live_minutes }) => `${count(live_minutes, language)} ${t("minutes")}`,
            },
            { title: t("estimate"), cell: ({ estimate }) => money(estimate.total_minor, estimate.currency, language) },
          ]}
        />
      )}
      {hasMore && (
        <button type="button" onClick={loadMore} disabled={isLoading}>
          {t("loadMore")}
        </button>
      )}
      {session.tenant_id !== null && (
        <>
          <Estimate tenantId={session.tenant_id} month={month} />
          <Orders tenantId={session.tenant_id} />
        </>
      )}
    </>
  );
}
