import { vodbox } from "#web/console/api.ts";
import { ListView } from "#web/console/components/list-view.tsx";
import { ShareBar } from "#web/console/components/share-bar.tsx";
import { Table } from "#web/console/components/table.tsx";
import { bytes } from "#web/console/format.ts";
import { useList } from "#web/console/hooks/use-list.ts";
import { useLanguage, useTexts } from "#web/console/texts/texts.tsx";
import { texts } from "./texts.ts";

/** Who stores how much, and what. */
export function Storage() {
  const t = useTexts(texts);
  const { language } = useLanguage();
  const list = useList(() => vodbox.listTenants(), []);
  const largest = Math.max(0, ...list.items.map(({ storage_bytes }) => storage_bytes));
  return (
    <section aria-labelledby="storage">
      <h2 id="storage">{t("storageByTenant")}</h2>
      <ListView list={list} empty={t("noTenants")}>
        {(items) => (
          <Table
            items={items}
            columns={[
              { title: t("tenant"), cell: ({ name }) => name },
              { title: t("total"), cell: ({ storage_bytes }) => bytes(storage_bytes, language) },
              { title: t("sources"), cell: ({ source_bytes }) => bytes(source_bytes, language) },
              { title: t("encoded"), cell: (one) => bytes(one.storage_bytes - one.source_bytes, language) },
              {
                title: t("share"),
                cell: ({ name, storage_bytes, source_bytes }) => (
                  <ShareBar
                    label={`${name}: ${bytes(storage_bytes, language)}`}
                    whole={largest}
                    parts={[
                      { label: t("sources"), value: source_bytes },
                      { label: t("encoded"), value: storage_bytes - source_bytes },
                    ]}
                  />
                ),
              },
            ]}
          />
        )}
      </ListView>
    </section>
  );
}
