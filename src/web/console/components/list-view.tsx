import type { ComponentChildren } from "preact";
import type { ListState } from "../hooks/use-list.ts";
import { useTexts } from "../texts/texts.tsx";
import { ErrorNotice } from "./notice.tsx";

type Props<T> = {
  list: ListState<T>;
  /** Shown instead of an empty list. */
  empty: string;
  /** The items, of which there is at least one. */
  children: (items: T[]) => ComponentChildren;
};

/** A list of the API as far as it is loaded, with what went wrong and a button for more. */
export function ListView<T>({ list, empty, children }: Props<T>) {
  const t = useTexts();
  const { items, isLoading, error, hasMore, loadMore, reload } = list;
  return (
    <>
      <ErrorNotice error={error} onRetry={reload} />
      <div aria-live="polite" class="fine">
        {isLoading && items.length === 0 ? t("loading") : ""}
      </div>
      {!isLoading && !error && items.length === 0 && <p class="empty">{empty}</p>}
      {items.length > 0 && children(items)}
      {hasMore && (
        <button type="button" onClick={loadMore} disabled={isLoading}>
          {t("loadMore")}
        </button>
      )}
    </>
  );
}
