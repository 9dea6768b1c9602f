import type { IconNode } from "lucide";
import type { ComponentChildren } from "preact";
import type { ListState } from "../hooks/use-list.ts";
import { useTexts } from "../texts/texts.tsx";
import { Empty } from "./empty.tsx";
import { ErrorNotice } from "./notice.tsx";

type Props<T> = {
  list: ListState<T>;
  /** Shown instead of an empty list. */
  empty: string;
  /** For the list that is the page: shown with `empty`, and what leads to a first item. */
  icon?: IconNode;
  action?: ComponentChildren;
  /** The items, of which there is at least one. */
  children: (items: T[]) => ComponentChildren;
};

/** A list of the API as far as it is loaded, with what went wrong and a button for more. */
export function ListView<T>({ list, empty, icon, action, children }: Props<T>) {
  const t = useTexts();
  const { items, isLoading, error, hasMore, loadMore, reload } = list;
  const isWaiting = isLoading && items.length === 0;
  const isEmpty = !isLoading && !error && items.length === 0;
  return (
    <>
      <ErrorNotice error={error} onRetry={reload} />
      <div aria-live="polite" class="unseen">
        {isWaiting ? t("loading") : ""}
      </div>
      {isWaiting && <Skeleton />}
      {isEmpty && !icon && <p class="empty">{empty}</p>}
      {isEmpty && icon && (
        <Empty icon={icon} text={empty}>
          {action}
        </Empty>
      )}
      {items.length > 0 && children(items)}
      {hasMore && (
        <button type="button" onClick={loadMore} disabled={isLoading}>
          {t("loadMore")}
        </button>
      )}
    </>
  );
}

/** Has the place of a list that is being loaded. It appears only if that takes a moment. */
export const Skeleton = () => (
  <div class="skeleton" aria-hidden="true">
    <span />
    <span />
    <span />
  </div>
);
