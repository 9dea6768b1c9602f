import { useState } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { Field } from "#web/console/components/form.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { useDebounced } from "#web/console/hooks/use-debounced.ts";
import { useResource } from "#web/console/hooks/use-resource.ts";
import { useTexts } from "#web/console/texts/texts.tsx";
import { texts } from "./texts.ts";

const MOST = 8;

/** Finds a video by its texts. `tenant` restricts the search of the operator. */
export function AssetSearch({ tenant, onChoose }: { tenant: number | null; onChoose(id: string): void }) {
  const t = useTexts(texts);
  const [text, setText] = useState("");
  const q = useDebounced(text.trim(), 300);
  const { value, error } = useResource(
    async () => (q === "" ? null : await vodbox.listAssets({ q, limit: MOST, ...(tenant && { tenant_id: tenant }) })),
    [q, tenant],
  );
  return (
    <search class="asset-search grow">
      <Field label={t("search")} name="search" type="search" autocomplete="off" onInput={setText} />
      <ErrorNotice error={error} />
      {value && (
        <ul class="found" aria-label={t("searchResults")}>
          {value.map(({ id, title }) => (
            <li key={id}>
              <button type="button" class="quiet" onClick={() => onChoose(String(id))}>
                {title}
              </button>
            </li>
          ))}
          {value.length === 0 && <li class="fine">{t("nothingFound")}</li>}
        </ul>
      )}
    </search>
  );
}
