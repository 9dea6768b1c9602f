import { vodbox } from "#web/console/api.ts";
import { useRefresh } from "#web/console/hooks/use-refresh.ts";
import { type ResourceState, useResource } from "#web/console/hooks/use-resource.ts";
import type { LiveChannel } from "#web/console/types.ts";

/** A channel, loaded again every `refreshMs` while the page is visible. */
export function useChannel(id: number, refreshMs: number): ResourceState<LiveChannel> {
  const channel = useResource(() => vodbox.getChannel({ id }), [id]);
  const { reload } = channel;
  useRefresh(reload, refreshMs);
  return channel;
}
