import { useEffect } from "preact/hooks";

/** Calls `reload` every `ms` while the page is visible. */
export function useRefresh(reload: () => void, ms: number): void {
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === "visible" && reload(), ms);
    return () => clearInterval(timer);
  }, [reload, ms]);
}
