import { useEffect, useState } from "preact/hooks";
import { WEBHOOK_DELIVERY_STATUS } from "#build/client/enums.ts";
import { vodbox } from "#web/console/api.ts";
import { Badge } from "#web/console/components/badge.tsx";
import { ListView } from "#web/console/components/list-view.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { StatusFilter } from "#web/console/components/status-filter.tsx";
import { Table } from "#web/console/components/table.tsx";
import { Time } from "#web/console/components/time.tsx";
import { useToast } from "#web/console/components/toast.tsx";
import { useList } from "#web/console/hooks/use-list.ts";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { WebhookDelivery } from "#web/console/types.ts";
import { COLORS } from "./delivery-colors.ts";
import { DeliveryDialog } from "./delivery-dialog.tsx";
import { texts } from "./texts.ts";

/** An attempt emits no event, so the list is loaded again when the next one is due, and not before. */
const REFRESH_MS = 2000;
const MAX_WAIT_MS = 3_600_000;

/** Milliseconds until a pending delivery may have changed; null without one. */
function untilNext(deliveries: WebhookDelivery[]): number | null {
  const due = deliveries
    .filter(({ status }) => status === "pending")
    .map((one) => Date.parse(one.next_attempt_at ?? ""));
  if (due.length === 0) return null;
  return Math.min(MAX_WAIT_MS, Math.max(REFRESH_MS, Math.min(...due) - Date.now() + REFRESH_MS) || REFRESH_MS);
}

/** `sent` changes when something was sent. */
type Props = { endpointId: number; canResend: boolean; sent: number };

export function Deliveries({ endpointId, canResend, sent }: Props) {
  const t = useTexts(texts);
  const toast = useToast();
  const [status, setStatus] = useState<WebhookDelivery["status"] | "">("");
  const [failure, setFailure] = useState<unknown>(null);
  const [opened, setOpened] = useState<string | null>(null);
  const list = useList(
    () => vodbox.listDeliveries({ id: endpointId, ...(status !== "" && { status }) }),
    [endpointId, status],
  );
  const { items, reload } = list;
  useEffect(() => {
    if (sent > 0) reload();
  }, [sent, reload]);
  useEffect(() => {
    const wait = untilNext(items);
    if (wait === null) return;
    const timer = setTimeout(reload, wait);
    return () => clearTimeout(timer);
  }, [items, reload]);
  const trying = async (work: () => Promise<string>) => {
    setFailure(null);
    try {
      toast(await work());
    } catch (thrown) {
      setFailure(thrown);
    }
    reload();
  };
  const resend = ({ delivery_id }: WebhookDelivery) =>
    trying(async () => {
      await vodbox.resendDelivery({ id: endpointId, delivery_id });
      return t("resent");
    });
  const resendFailed = () =>
    trying(async () => {
      const sum = { resent: 0, paused: 0 };
      for (let after: number | undefined; ; ) {
        const body = after === undefined ? {} : { after };
        const { resent, paused, last } = await vodbox.resendFailedDeliveries({ id: endpointId, body });
        sum.resent += resent;
        sum.paused += paused;
        if (last === null) break;
        after = last;
      }
      if (sum.resent > 0) return t("resentMany", { count: sum.resent });
      return sum.paused > 0 ? t("stillPaused") : t("nothingFailed");
    });
  return (
    <section aria-labelledby="deliveries">
      <div class="page-head">
        <h2 id="deliveries">{t("deliveries")}</h2>
        <div class="row">
          <StatusFilter
            value={status}
            options={WEBHOOK_DELIVERY_STATUS.map((one) => [one, t(one)])}
            onChange={(one) => setStatus(one)}
          />
          {canResend && items.length > 0 && (
            <button type="button" onClick={resendFailed}>
              {t("resendFailed")}
            </button>
          )}
        </div>
      </div>
      <ErrorNotice error={failure} />
      <ListView list={list} empty={t("noDeliveries")}>
        {(items) => (
          <div class="wide">
            <Table
              items={items}
              columns={[
                { title: t("event"), cell: ({ event }) => <code class="nowrap">{event}</code> },
                { title: t("status"), cell: (one) => <Badge state={COLORS[one.status]} text={t(one.status)} /> },
                { title: t("response"), cell: (one) => <Outcome delivery={one} /> },
                { title: t("took"), cell: ({ duration_ms }) => (duration_ms === null ? "–" : `${duration_ms} ms`) },
                { title: t("attempts"), cell: ({ attempts }) => attempts },
                { title: t("created"), cell: ({ created_at }) => <Time at={created_at} /> },
                {
                  title: t("actions"),
                  cell: (one) => (
                    <div class="row">
                      {canResend && (
                        <button type="button" onClick={() => resend(one)}>
                          {t("resend")}
                        </button>
                      )}
                      <button type="button" onClick={() => setOpened(one.delivery_id)}>
                        {t("details")}
                      </button>
                    </div>
                  ),
                },
              ]}
            />
          </div>
        )}
      </ListView>
      {opened && <DeliveryDialog endpointId={endpointId} deliveryId={opened} onClose={() => setOpened(null)} />}
    </section>
  );
}

function Outcome({ delivery }: { delivery: WebhookDelivery }) {
  const t = useTexts(texts);
  const { response_status, response_body, error, next_attempt_at } = delivery;
  const summary = response_status === null ? (error?.message ?? "–") : String(response_status);
  return (
    <div class="two-lines">
      {response_body ? (
        <details>
          <summary>{summary}</summary>
          <pre>{response_body}</pre>
        </details>
      ) : (
        summary
      )}
      {next_attempt_at && (
        <span class="fine">
          {t("next")} <Time at={next_attempt_at} />
        </span>
      )}
    </div>
  );
}
