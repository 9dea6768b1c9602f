import { useLocation } from "preact-iso/router";
import { vodbox } from "#web/console/api.ts";
import { pagePath } from "#web/console/base.ts";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { PageHead } from "#web/console/components/page-head.tsx";
import { useResource } from "#web/console/hooks/use-resource.ts";
import { useTexts } from "#web/console/texts/texts.tsx";
import { AuditLog } from "./audit-log.tsx";
import { Backups } from "./backups.tsx";
import { Checkup } from "./checkup.tsx";
import { Findings } from "./findings.tsx";
import { Log } from "./log.tsx";
import { Overview } from "./overview.tsx";
import { Replica } from "./replica.tsx";
import { Settings } from "./settings.tsx";
import { Storage } from "./storage.tsx";
import { texts } from "./texts.ts";

const VIEWS = ["overview", "backup", "settings", "log"] as const;

/** The operator's page: is everything well, what runs here, and who changed what. */
export default function System() {
  const t = useTexts(texts);
  const { query } = useLocation();
  const view = VIEWS.find((one) => one === query.view) ?? "overview";
  return (
    <>
      <PageHead title={t("system")}>
        <nav class="tabs" aria-label={t("system")}>
          {VIEWS.map((one) => (
            <a
              key={one}
              href={`${pagePath("system")}${one === "overview" ? "" : `?view=${one}`}`}
              aria-current={one === view ? "page" : undefined}
            >
              {t(one)}
            </a>
          ))}
        </nav>
      </PageHead>
      {view === "backup" && <Backups />}
      {view === "settings" && <Settings />}
      {view === "log" && <Log />}
      {view === "overview" && (
        <>
          <Overview />
          <Health />
          <Checkup />
          <Storage />
          <AuditLog />
        </>
      )}
    </>
  );
}

function Health() {
  const t = useTexts(texts);
  const { value, error, reload } = useResource(() => vodbox.runQuickChecks(), []);
  return (
    <section aria-labelledby="health">
      <div class="page-head">
        <h2 id="health">{t("health")}</h2>
        <button type="button" onClick={reload}>
          {t("refresh")}
        </button>
      </div>
      <ErrorNotice error={error} onRetry={reload} />
      {value ? <Findings findings={value.findings} /> : <p>{t("loading")}</p>}
      <Replica />
    </section>
  );
}
