import { useEffect } from "preact/hooks";
import { useTexts } from "../texts/texts.tsx";

/** Asks before the page is left, by the browser or by a link of the console, while there are changes that are not saved. */
export function useUnsaved(isChanged: boolean): void {
  const t = useTexts();
  const question = t("leaveUnsaved");
  useEffect(() => {
    if (!isChanged) return;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    // Before the router, which listens to the same clicks.
    const askForLink = (event: MouseEvent) => {
      const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
      const staysOpen = link?.getAttribute("target") === "_blank" || link?.getAttribute("href")?.startsWith("#");
      if (!link || staysOpen || event.ctrlKey || event.metaKey || event.shiftKey || confirm(question)) return;
      event.preventDefault();
      event.stopPropagation();
    };
    addEventListener("beforeunload", ask);
    addEventListener("click", askForLink, true);
    return () => {
      removeEventListener("beforeunload", ask);
      removeEventListener("click", askForLink, true);
    };
  }, [isChanged, question]);
}
