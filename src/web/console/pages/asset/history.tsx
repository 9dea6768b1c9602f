import type { ComponentChildren } from "preact";
import { vodbox } from "#web/console/api.ts";
import { pagePath } from "#web/console/base.ts";
import { Badge } from "#web/console/components/badge.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { Time } from "#web/console/components/time.tsx";
import { type ListState, useList } from "#web/console/hooks/use-list.ts";
import { useSession } from "#web/console/session.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Job, WebhookDelivery } from "#web/console/types.ts";
import type { SectionProps } from "./section.ts";
import { texts } from "./texts.ts";
import { useAssetEvents } from "./use-asset-events.ts";

type Entry = { key: string; at: string; content: ComponentChildren };

/** The time down to which a list is loaded: what is older may be between items that are not loaded yet. */
const loadedTo = ({ items, hasMore }: ListState<{ created_at: string }>) =>
  hasMore ? (items.at(-1)?.created_at ?? "") : "";

/** Jobs and webhook deliveries of an asset, newest first. */
export default function History({ asset }: SectionProps) {
  const { may } = useSession();
  const maySeeDeliveries = may("webhooks:read");
  const jobs = useList(() => vodbox.listJobs({ asset_id: asset.id }), [asset.id]);
  return (
    <>
      {maySeeDeliveries ? (
        <WithDeliveries assetId={asset.id} jobs={jobs} />
      ) : (
        <Entries lists={[jobs]} entries={jobs.items.map(entryOfJob)} />
      )}
      <Reloading assetId={asset.id} reload={jobs.reload} />
    </>
  );
}

function Reloading({ assetId, reload }: { assetId: number; reload(): void }) {
  useAssetEvents(assetId, "video.", reload);
  return null;
}

function WithDeliveries({ assetId, jobs }: { assetId: number; jobs: ListState<Job> }) {
  const deliveries = useList(() => vodbox.listAssetDeliveries({ id: assetId }), [assetId]);
  const entries = [...jobs.items.map(entryOfJob), ...deliveries.items.map(entryOfDelivery)];
  return (
    <>
      <Reloading assetId={assetId} reload={deliveries.reload} />
      <Entries lists={[jobs, deliveries]} entries={entries} />
    </>
  );
}

type EntriesProps = { lists: ListState<{ created_at: string }>[]; entries: Entry[] };

function Entries({ lists, entries }: EntriesProps) {
  const t = useTexts(texts);
  const isLoading = lists.some((list) => list.isLoading);
  const from = lists.map(loadedTo).sort().at(-1) ?? "";
  const shown = entries.filter(({ at }) => at >= from).sort((a, b) => (a.at < b.at ? 1 : a.at > b.at ? -1 : 0));
  const reload = () => lists.map((list) => list.reload());
  const more = lists.filter((list) => list.hasMore && loadedTo(list) === from);
  return (
    <>
      {lists.map(({ error, reload }, index) => (
        <ErrorNotice key={index} error={error} onRetry={reload} />
      ))}
      <div class="row end">
        <button type="button" disabled={isLoading} onClick={reload}>
          {t("refresh")}
        </button>
      </div>
      <div aria-live="polite" class="fine">
        {isLoading && shown.length === 0 ? t("loading") : ""}
      </div>
      {!isLoading && shown.length === 0 && <p class="empty">{t("noHistory")}</p>}
      <ol class="history">
        {shown.map(({ key, at, content }) => (
          <li key={key}>
            <Time at={at} />
            <div>{content}</div>
          </li>
        ))}
      </ol>
      {more.length > 0 && (
        <button type="button" disabled={isLoading} onClick={() => more.map((list) => list.loadMore())}>
          {t("loadMore")}
        </button>
      )}
    </>
  );
}

const entryOfJob = (job: Job): Entry => ({ key: `job ${job.id}`, at: job.created_at, content: <JobEntry job={job} /> });
const entryOfDelivery = (delivery: WebhookDelivery): Entry => ({
  key: delivery.delivery_id,
  at: delivery.created_at,
  content: <DeliveryEntry delivery={delivery} />,
});

function JobEntry({ job }: { job: Job }) {
  const t = useTexts(texts);
  return (
    <>
      <p class="row">
        <strong>{t("job", { id: job.id })}</strong>
        <Badge state={job.status} text={t(job.status)} />
        <span class="fine">{t("attempt", { attempt: job.attempt, most: job.max_attempts })}</span>
      </p>
      {job.error && (
        <p class="fault">
          {job.error.message} <code>{job.error.code}</code>
        </p>
      )}
      {job.caption_errors &&
        Object.entries(job.caption_errors).map(([language, message]) => (
          <p key={language} class="fault">
            {t("subtitles")} {language}: {message}
          </p>
        ))}
      <p class="fine">
        {job.worker_id !== null && (
          <>
            {t("worker")} <code>{job.worker_id}</code> ·{" "}
          </>
        )}
        {t("started")} <Time at={job.started_at} /> · {t("finished")} <Time at={job.finished_at} />
      </p>
    </>
  );
}

const COLORS = { pending: "processing", delivered: "ready", failed: "errored", skipped: "queued" };

function DeliveryEntry({ delivery }: { delivery: WebhookDelivery }) {
  const t = useTexts(texts);
  const { response_status, error, duration_ms } = delivery;
  const response = response_status === null ? error?.message : String(response_status);
  return (
    <>
      <p class="row">
        <strong>{t("delivery")}</strong>
        <code>{delivery.event}</code>
        <Badge state={COLORS[delivery.status]} text={t(delivery.status)} />
      </p>
      <p class="fine">
        <a href={pagePath(`webhooks/${delivery.endpoint_id}`)}>
          {t("endpoint")} {delivery.endpoint_id}
        </a>{" "}
        · {t("attempts", { count: delivery.attempts })}
        {response && ` · ${response}`}
        {duration_ms !== null && ` · ${duration_ms} ms`}
      </p>
    </>
  );
}
