import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { vodbox } from "../api.ts";
import { type LiveEvent, useLive } from "../hooks/live.ts";
import type { Notification } from "../types.ts";

const POLL_MS = 60_000;
const SHOWN = 50;
/** Events that may come with a notification, which is committed with them. */
const REASONS = new Set(["video.job.failed", "video.asset.errored", "live.stream.ended"]);

/** One's own notifications. `isOpen`: whether they are shown; otherwise only their number is loaded. */
export function useNotifications(isOpen: boolean) {
  const [unread, setUnread] = useState(0);
  const [items, setItems] = useState<Notification[] | null>(null);
  const latest = useRef(0);
  const load = useCallback(async () => {
    const own = ++latest.current;
    try {
      const [{ count }, list] = await Promise.all([
        vodbox.countMyUnreadNotifications({}),
        isOpen ? vodbox.listMyNotifications({}).page({ limit: SHOWN }) : null,
      ]);
      if (own !== latest.current) return;
      setUnread(count);
      if (list) setItems(list.items);
    } catch {
      // The next poll tries again; the pages themselves report a lost connection.
    }
  }, [isOpen]);
  useEffect(() => {
    void load();
    const timer = setInterval(() => void load(), POLL_MS);
    return () => clearInterval(timer);
  }, [load]);
  useLive(
    useCallback(
      ({ type }: LiveEvent) => {
        if (REASONS.has(type)) void load();
      },
      [load],
    ),
    load,
  );
  const markRead = async (ids?: number[]) => {
    await vodbox.markMyNotificationsRead({ body: ids ? { ids } : {} }).catch(() => {});
    await load();
  };
  return { unread, items, markRead };
}
