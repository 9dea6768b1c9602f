import { useEffect, useMemo, useRef } from "preact/hooks";

/**
 * A function that calls `work` at once and then at most every `ms`; calls in between are combined into one. Many events
 * within a second must not become as many requests.
 */
export function useThrottled(work: () => void, ms: number): () => void {
  const current = useRef(work);
  current.current = work;
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  return useMemo(() => {
    let isDue = false;
    const open = () => {
      timer.current = undefined;
      if (!isDue) return;
      isDue = false;
      run();
    };
    const run = () => {
      if (timer.current !== undefined) {
        isDue = true;
        return;
      }
      timer.current = setTimeout(open, ms);
      current.current();
    };
    return run;
  }, [ms]);
}
