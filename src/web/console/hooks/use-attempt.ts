import { useCallback, useState } from "preact/hooks";

/** Runs changes, one error at a time: `attempt` resolves with whether the change succeeded. */
export function useAttempt(): { failure: unknown; attempt(work: () => Promise<unknown>): Promise<boolean> } {
  const [failure, setFailure] = useState<unknown>(null);
  const attempt = useCallback(async (work: () => Promise<unknown>) => {
    setFailure(null);
    try {
      await work();
      return true;
    } catch (thrown) {
      setFailure(thrown);
      return false;
    }
  }, []);
  return { failure, attempt };
}
