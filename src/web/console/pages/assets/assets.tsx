import { Clapperboard, SearchX } from "lucide";
import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { vodbox } from "#web/console/api.ts";
import { pagePath } from "#web/console/base.ts";
import { Empty } from "#web/console/components/empty.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { PageHead } from "#web/console/components/page-head.tsx";
import { count as number } from "#web/console/format.ts";
import { type LiveEvent, useLive } from "#web/console/hooks/live.ts";
import { useResource } from "#web/console/hooks/use-resource.ts";
import { remembered } from "#web/console/remembered.ts";
import { useSession } from "#web/console/session.tsx";
import { useLanguage, useTexts } from "#web/console/texts/texts.tsx";
import { AssetItems } from "./asset-list.tsx";
import { BulkBar, useBulk } from "./bulk-bar.tsx";
import { CollectionHead } from "./collection-head.tsx";
import { CollectionPanel } from "./collections.tsx";
import { ColumnMenu, chosenColumns } from "./columns.tsx";
import { FilterBar } from "./filter-bar.tsx";
import { addressOf, type Filters, filtersOf, paramsOf } from "./filters.ts";
import { FoundInside } from "./found.tsx";
import { NOTHING, type Selection, sizeOf } from "./selection.ts";
import { texts } from "./texts.ts";
import { useAssets } from "./use-assets.ts";
import { useCollections } from "./use-collections.ts";

const CHANGES = new Set(["video.upload.completed", "video.asset.ready", "video.asset.errored", "video.asset.deleted"]);
/** Where the list was left, for the way back to it. */
let leftAt = { address: "", scroll: 0 };

/** All videos: as posters or as rows, restricted by what is in the address. */
export default function Assets() {
  const t = useTexts(texts);
  const { language } = useLanguage();
  const { query, route } = useLocation();
  const { session, isAdmin, may } = useSession();
  const filters = filtersOf(query);
  const address = addressOf(filters);
  const params = useMemo(() => paramsOf(filters, isAdmin), [address, isAdmin]);
  const change = useCallback(
    (fields: Partial<Filters>, replace = false) => {
      const next = addressOf({ ...filtersOf(Object.fromEntries(new URLSearchParams(location.search))), ...fields });
      if (next !== location.search) route(`${pagePath("assets")}${next}`, replace);
    },
    [route],
  );
  const tenants = useResource(async () => (isAdmin ? await vodbox.listTenants({ limit: 500 }) : []), [isAdmin]);
  const tenant = isAdmin ? filters.tenant : session.tenant_id;
  const mayList = may("assets:read") || may("assets:write");
  const collections = useCollections(isAdmin ? tenant : null, tenant !== null && mayList);

  const list = useAssets(params);
  const [selection, setSelection] = useState<Selection>(NOTHING);
  useEffect(() => setSelection(NOTHING), [address]);
  const [layout, setLayout] = useState<"grid" | "list">(remembered.layout.get() === "list" ? "list" : "grid");
  const [columns, setColumns] = useState(chosenColumns);
  const total = list.count ?? 0;
  const bulk = useBulk(params, total, () => {
    setSelection(NOTHING);
    list.reload();
    void collections.reload();
  });
  const { patch, reload, reloadSoon } = list;
  const soon = useRef(() => {});
  soon.current = () => {
    reloadSoon();
    collections.reloadSoon();
  };
  const onEvent = useCallback(
    ({ type, data }: LiveEvent) => {
      if (CHANGES.has(type)) soon.current();
      if (type !== "job.progress") return;
      const { progress, stage } = data as { progress: number; stage: string | null };
      patch(Number(data.asset_id), { progress, stage });
    },
    [patch],
  );
  useLive(onEvent, reload);
  useEffect(() => {
    if (list.count !== null && leftAt.address === address) scrollTo({ top: leftAt.scroll, behavior: "instant" });
  }, [list.count === null]);
  useEffect(() => {
    const remember = () => {
      // The next page is shown from its top, a moment before this one is removed.
      if (location.pathname !== pagePath("assets")) return;
      leftAt = {
        address: addressOf(filtersOf(Object.fromEntries(new URLSearchParams(location.search)))),
        scroll: scrollY,
      };
    };
    // A click that leads to another page may follow before the end of scrolling is reported.
    addEventListener("click", remember, { capture: true });
    addEventListener("scrollend", remember);
    return () => {
      removeEventListener("click", remember, { capture: true });
      removeEventListener("scrollend", remember);
    };
  }, []);
  const choose = (next: "grid" | "list") => {
    remembered.layout.set(next);
    setLayout(next);
  };
  const mayWrite = may("assets:write");
  const isSearch = address !== "";
  const into = !isAdmin && filters.collection !== null ? `?collection=${filters.collection}` : "";
  const uploadPath = `${pagePath("uploads")}${into}`;
  const current = collections.all?.find(({ id }) => id === filters.collection);
  const hasTree = tenant !== null && mayList;
  return (
    <>
      <PageHead title={t("assets")}>
        {may("assets:write") && (
          <button type="button" class="primary" onClick={() => route(uploadPath)}>
            {t("upload")}
          </button>
        )}
      </PageHead>
      <div class={hasTree ? "library" : ""}>
        {hasTree && (
          <CollectionPanel
            collections={collections}
            tenantId={tenant}
            chosen={filters.collection}
            onChoose={(collection) => change({ collection })}
            onMoveAssets={(moved, collection_id) => bulk.start(moved, { action: "move", collection_id })}
          />
        )}
        <div aria-busy={collections.isLoading}>
          {current && <CollectionHead collection={current} onChange={collections.reload} />}
          <FilterBar
            filters={filters}
            isAdmin={isAdmin}
            layout={layout}
            tenants={tenants.value ?? []}
            onChange={change}
            onLayout={choose}
          />
          <ErrorNotice error={list.error} onRetry={list.reload} />
          {tenant !== null && filters.q.trim().length > 1 && <FoundInside q={filters.q.trim()} tenantId={tenant} />}
          <div class="row list-head">
            {mayWrite && total > 0 && (
              <label class="check">
                <input
                  type="checkbox"
                  checked={selection.isAll && selection.ids.size === 0}
                  ref={(box) => {
                    if (box) box.indeterminate = sizeOf(selection, total) > 0 && sizeOf(selection, total) < total;
                  }}
                  onChange={({ currentTarget }) =>
                    setSelection(currentTarget.checked ? { isAll: true, ids: new Set() } : NOTHING)
                  }
                />
                {t("selectEverything")}
              </label>
            )}
            <span class="fine" role="status">
              {list.count === null && !list.error && t("loading")}
              {total === 1 ? t("matchingOne") : total > 1 && t("matching", { count: number(total, language) })}
            </span>
            {layout === "list" && total > 0 && (
              <ColumnMenu chosen={columns} isOperator={isAdmin} onChange={setColumns} />
            )}
          </div>
          {list.count === 0 && isSearch && <Empty icon={SearchX} text={t("nothingFound")} />}
          {list.count === 0 && !isSearch && (
            <Empty icon={Clapperboard} text={t("noAssets")}>
              {mayWrite && (
                <button type="button" class="primary" onClick={() => route(uploadPath)}>
                  {t("uploadFirst")}
                </button>
              )}
            </Empty>
          )}
          {total > 0 && (
            <AssetItems
              list={list}
              layout={layout}
              selection={selection}
              columns={columns}
              tenants={new Map(tenants.value?.map(({ id, name }) => [id, name]))}
              count={total}
              onSelect={mayWrite && !bulk.isRunning ? setSelection : null}
            />
          )}
          {mayWrite && (
            <BulkBar
              selection={selection}
              total={total}
              bulk={bulk}
              collections={hasTree ? (collections.all ?? []) : null}
              onSelect={setSelection}
            />
          )}
        </div>
      </div>
    </>
  );
}
