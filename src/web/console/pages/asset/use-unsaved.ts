import { useEffect } from "preact/hooks";

/** Has the browser ask before the page is left, while there are changes that are not saved. */
export function useUnsaved(isChanged: boolean): void {
  useEffect(() => {
    if (!isChanged) return;
    const ask = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", ask);
    return () => removeEventListener("beforeunload", ask);
  }, [isChanged]);
}
