import { useLocation } from "preact-iso/router";
import { TRANSCODING_JOB_STATUS } from "#build/client/enums.ts";
import { pagePath } from "#web/console/base.ts";
import { PageHead } from "#web/console/components/page-head.tsx";
import { StatusFilter } from "#web/console/components/status-filter.tsx";
import { useSession } from "#web/console/session.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Job } from "#web/console/types.ts";
import { Queue, textOf } from "./queue.tsx";
import { texts } from "./texts.ts";
import { Workers } from "./workers.tsx";

const statusOf = (text: string | undefined): Job["status"] | "" =>
  TRANSCODING_JOB_STATUS.find((one) => one === text) ?? "";

/** The queue, and for the operator the workers. View and filter are in the page's address. */
export default function Jobs() {
  const t = useTexts(texts);
  const { isAdmin } = useSession();
  const { query, route } = useLocation();
  const status = statusOf(query.status);
  const view = isAdmin && query.view === "workers" ? "workers" : "queue";
  const show = (parameters: Record<string, string>) => {
    const entries = Object.entries(parameters).filter(([, value]) => value !== "");
    route(`${pagePath("jobs")}${entries.length > 0 ? `?${new URLSearchParams(entries)}` : ""}`);
  };
  return (
    <>
      <PageHead title={t("jobs")}>
        {view === "queue" && (
          <StatusFilter
            value={status}
            options={TRANSCODING_JOB_STATUS.map((one) => [one, t(textOf(one))])}
            onChange={(one) => show({ status: one })}
          />
        )}
        {isAdmin && (
          <div class="toggle">
            {(["queue", "workers"] as const).map((one) => (
              <button
                key={one}
                type="button"
                aria-pressed={view === one}
                onClick={() => show(one === "workers" ? { view: one } : {})}
              >
                {t(one)}
              </button>
            ))}
          </div>
        )}
      </PageHead>
      {view === "workers" ? <Workers /> : <Queue status={status} />}
    </>
  );
}
