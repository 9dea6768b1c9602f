import { vodbox } from "../../api.ts";
import { useRefresh } from "../../hooks/use-refresh.ts";
import { type ResourceState, useResource } from "../../hooks/use-resource.ts";
import type { LiveChannel } from "../../types.ts";

/** A channel, loaded again every `refreshMs` while the page is visible. */
export function useChannel(id: number, refreshMs: number): ResourceState<LiveChannel> {
  const channel = useResource(() => vodbox.getChannel({ id }), [id]);
  const { reload } = channel;
  useRefresh(reload, refreshMs);
  return channel;
}
