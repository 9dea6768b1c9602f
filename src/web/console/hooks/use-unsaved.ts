import { useEffect } from "preact/hooks";
import { useTexts } from "../texts/texts.tsx";

/** Parts of the page that have changes which are not saved. */
const unsaved = new Set<symbol>();

/** For code that leaves the page by itself: whether nothing is lost by it, or the person agrees to that. */
export const mayLeave = (question: string): boolean => unsaved.size === 0 || confirm(question);

const KEYS_OF_TABS = new Set(["ArrowLeft", "ArrowRight", "Home", "End"]);

/** Asks before the page is left, by the browser, a link of the console or another tab of the page, while there are changes that are not saved. */
export function useUnsaved(isChanged: boolean): void {
  const t = useTexts();
  const question = t("leaveUnsaved");
  useEffect(() => {
    if (!isChanged) return;
    const part = Symbol("changes");
    unsaved.add(part);
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    // Before the router, which listens to the same clicks.
    const askForLink = (event: MouseEvent) => {
      const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
      const staysOpen = link?.getAttribute("target") === "_blank" || link?.getAttribute("href")?.startsWith("#");
      if (!link || staysOpen || event.ctrlKey || event.metaKey || event.shiftKey || confirm(question)) return;
      event.preventDefault();
      event.stopPropagation();
    };
    const askForTab = (event: MouseEvent | KeyboardEvent) => {
      const tab = event.target instanceof Element ? event.target.closest('[role="tab"]') : null;
      const leaves =
        event instanceof KeyboardEvent ? KEYS_OF_TABS.has(event.key) : tab?.getAttribute("aria-selected") === "false";
      if (!tab || !leaves || confirm(question)) return;
      event.preventDefault();
      event.stopPropagation();
    };
    addEventListener("beforeunload", ask);
    addEventListener("click", askForLink, true);
    addEventListener("click", askForTab, true);
    addEventListener("keydown", askForTab, true);
    return () => {
      unsaved.delete(part);
      removeEventListener("click", askForTab, true);
      removeEventListener("keydown", askForTab, true);
      removeEventListener("beforeunload", ask);
      removeEventListener("click", askForLink, true);
    };
  }, [isChanged, question]);
}
