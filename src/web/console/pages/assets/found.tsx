import { vodbox } from "#web/console/api.ts";
import { pagePath } from "#web/console/base.ts";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { duration } from "#web/console/format.ts";
import { useResource } from "#web/console/hooks/use-resource.ts";
import { useTexts } from "#web/console/texts/texts.tsx";
import { texts } from "./texts.ts";

/** Results of the search; the list of videos has those of titles. */
const LIMIT = 10;

/** Where the videos of a tenant say the words: in captions, chapters and descriptions, with links that play it there. */
export function FoundInside({ q, tenantId }: { q: string; tenantId: number }) {
  const t = useTexts(texts);
  const found = useResource(() => vodbox.searchAssets({ q, tenant_id: tenantId, limit: LIMIT }), [q, tenantId]);
  const results = (found.value ?? [])
    .map((result) => ({ ...result, matches: result.matches.filter(({ kind }) => kind !== "title") }))
    .filter(({ matches }) => matches.length > 0);
  if (found.error) return <ErrorNotice error={found.error} onRetry={found.reload} />;
  if (results.length === 0) return null;
  return (
    <section class="found" aria-label={t("foundInside")}>
      <h2>{t("foundInside")}</h2>
      <ul>
        {results.map(({ asset_id, title, matches }) => (
          <li key={asset_id}>
            <a href={pagePath(`assets/${asset_id}`)}>{title}</a>
            <ul>
              {matches.map(({ kind, text, start_ms }) => (
                <li key={`${kind} ${start_ms} ${text}`}>
                  {start_ms !== undefined && (
                    <a href={`${pagePath(`assets/${asset_id}`)}?t=${start_ms / 1000}`}>
                      {t("foundAt", { time: duration(Math.floor(start_ms / 1000)) })}
                    </a>
                  )}{" "}
                  <span>{text}</span>
                </li>
              ))}
            </ul>
          </li>
        ))}
      </ul>
    </section>
  );
}
