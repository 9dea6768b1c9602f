import { Bell as BellIcon } from "lucide";
import { useId, useRef, useState } from "preact/hooks";
import { pagePath } from "../base.ts";
import { Time } from "../components/time.tsx";
import { Icon } from "../shell/icon.tsx";
import { useTexts } from "../texts/texts.tsx";
import type { Notification } from "../types.ts";
import { texts } from "./texts.ts";
import { useNotifications } from "./use-notifications.ts";

/** More are not counted. */
const MAX_SHOWN = 99;

/** The bell, and the list that it opens: the browser closes it by Escape, and by a click elsewhere. */
export function Bell() {
  const t = useTexts(texts);
  const id = useId();
  const panel = useRef<HTMLDivElement>(null);
  const [isOpen, setOpen] = useState(false);
  const { unread, items, markRead } = useNotifications(isOpen);
  const close = () => panel.current?.hidePopover();
  return (
    <>
      <button
        type="button"
        class="bell"
        popovertarget={id}
        aria-expanded={isOpen}
        aria-label={unread > 0 ? t("unreadCount", { count: unread }) : t("notifications")}
      >
        <Icon node={BellIcon} />
        {unread > 0 && <span class="bell-count">{unread > MAX_SHOWN ? `${MAX_SHOWN}+` : unread}</span>}
      </button>
      <div
        id={id}
        ref={panel}
        popover="auto"
        class="notifications"
        role="dialog"
        aria-label={t("notifications")}
        onToggle={({ newState }) => setOpen(newState === "open")}
      >
        <div class="row notifications-head">
          <h2>{t("notifications")}</h2>
          {unread > 0 && (
            <button type="button" class="quiet" onClick={() => void markRead()}>
              {t("markAll")}
            </button>
          )}
        </div>
        {items?.length === 0 && <p class="empty">{t("nothing")}</p>}
        <ul>
          {items?.map((item) => (
            <li key={item.id}>
              <Entry
                item={item}
                onOpen={() => {
                  close();
                  if (!item.is_read) void markRead([item.id]);
                }}
              />
            </li>
          ))}
        </ul>
        <a class="notifications-end" href={pagePath("account")} onClick={close}>
          {t("choose")}
        </a>
      </div>
    </>
  );
}

function Entry({ item, onOpen }: { item: Notification; onOpen(): void }) {
  const t = useTexts(texts);
  const { page, text } = describe(item);
  const values = Object.fromEntries(Object.entries(item.data).map(([name, value]) => [name, value ?? ""]));
  return (
    <a href={pagePath(page)} class={item.is_read ? "notification" : "notification unread"} onClick={onOpen}>
      <strong>
        {t(item.kind)}
        {!item.is_read && <span class="unseen"> ({t("unread")})</span>}
      </strong>
      <span>{t(text, values)}</span>
      <small class="fine">
        <Time at={item.created_at} />
      </small>
    </a>
  );
}

/** Where a notification leads, and its text. */
function describe({ kind, data }: Notification) {
  if (kind === "encode_failed") return { page: `assets/${data.asset_id}`, text: "encodeFailedText" } as const;
  if (kind === "live_signal_lost") return { page: `live/${data.channel_id}`, text: "signalLostText" } as const;
  if (kind === "webhook_disabled") return { page: `webhooks/${data.endpoint_id}`, text: "webhookText" } as const;
  return { page: "usage", text: data.resource === "storage" ? "quotaText" : "minutesText" } as const;
}
