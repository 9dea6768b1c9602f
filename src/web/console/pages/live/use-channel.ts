import { useEffect } from "preact/hooks";
import { vodbox } from "../../api.ts";
import { type ResourceState, useResource } from "../../hooks/use-resource.ts";
import type { LiveChannel } from "../../types.ts";

/** A channel, loaded again every `refreshMs` while the page is visible. */
export function useChannel(id: number, refreshMs: number): ResourceState<LiveChannel> {
  const channel = useResource(() => vodbox.getChannel({ id }), [id]);
  const { reload } = channel;
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === "visible" && reload(), refreshMs);
    return () => clearInterval(timer);
  }, [reload, refreshMs]);
  return channel;
}
