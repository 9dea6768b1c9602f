import { Clapperboard, type IconNode, Plus, Search, Upload } from "lucide";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { vodbox } from "../api.ts";
import { pagePath } from "../base.ts";
import { duration } from "../format.ts";
import { mayLeave } from "../hooks/use-unsaved.ts";
import { listedPages } from "../page-list.ts";
import { useSession } from "../session.tsx";
import { useTexts } from "../texts/texts.tsx";
import { Icon } from "./icon.tsx";

type Item = { key: string; icon: IconNode; title: string; detail?: string; path: string };

const WAIT_MS = 150;
const MAX_VIDEOS = 8;

/** Whether a text has all words of the query, whatever the case. */
const matches = (query: string, text: string) =>
  query
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.toLowerCase().includes(word));

/** Videos by title, description and what is said in them, a moment after the last key. */
function useVideos(query: string): { items: Item[]; isPending: boolean } {
  const { may, session } = useSession();
  const [found, setFound] = useState<{ query: string; items: Item[] }>({ query: "", items: [] });
  const isAllowed = may("assets:read");
  useEffect(() => {
    if (!isAllowed || query.length < 2) return;
    let isCurrent = true;
    const timer = setTimeout(async () => {
      const items = await (session.tenant_id === null ? byTitle(query) : bySearch(query)).catch(() => []);
      if (isCurrent) setFound({ query, items });
    }, WAIT_MS);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [query, isAllowed]);
  const isSearched = isAllowed && query.length >= 2;
  const isCurrent = found.query === query;
  return { items: isSearched && isCurrent ? found.items : [], isPending: isSearched && !isCurrent };
}

async function bySearch(query: string): Promise<Item[]> {
  const results = await vodbox.searchAssets({ q: query, limit: MAX_VIDEOS });
  return results.map(({ asset_id, title, matches: [first] }) => ({
    key: `video ${asset_id}`,
    icon: Clapperboard,
    title,
    ...(first &&
      first.kind !== "title" && {
        detail: `${first.start_ms === undefined ? "" : `${duration(first.start_ms / 1000)} `}${first.text}`,
      }),
    path: `assets/${asset_id}${first?.start_ms === undefined ? "" : `?t=${Math.floor(first.start_ms / 1000)}`}`,
  }));
}

/** The operator searches all tenants, by title. */
async function byTitle(query: string): Promise<Item[]> {
  const { items } = await vodbox.listAssets({ q: query }).page({ limit: MAX_VIDEOS });
  return items.map(({ id, title }) => ({ key: `video ${id}`, icon: Clapperboard, title, path: `assets/${id}` }));
}

/** Pages and actions whose names match, then videos. */
function useItems(query: string): { items: Item[]; isPending: boolean } {
  const t = useTexts();
  const { session, may } = useSession();
  const pages: Item[] = listedPages(session).map(({ path, text, icon }) => ({ key: path, icon, title: t(text), path }));
  const actions: Item[] = [
    ...(may("assets:write") ? [{ key: "do upload", icon: Upload, title: t("uploadVideo"), path: "uploads" }] : []),
    ...(session.role === "admin" ? [{ key: "do invite", icon: Plus, title: t("inviteSomebody"), path: "users" }] : []),
    ...(may("assets:write") ? [{ key: "do live", icon: Plus, title: t("startStream"), path: "live" }] : []),
  ];
  const named = [...pages, ...actions].filter(({ title }) => matches(query, title));
  const videos = useVideos(query.trim());
  return { items: [...named, ...videos.items], isPending: videos.isPending };
}

/** Ctrl-K: goes to any page or video that its words name. A list box with a field, as in the ARIA pattern "combobox". */
function Palette({ onClose }: { onClose(): void }) {
  const t = useTexts();
  const id = useId();
  const { route } = useLocation();
  const element = useRef<HTMLDialogElement>(null);
  const [query, setQuery] = useState("");
  const [selected, setSelected] = useState(0);
  const { items, isPending } = useItems(query);
  const current = Math.min(selected, items.length - 1);
  useEffect(() => {
    const dialog = element.current as HTMLDialogElement;
    dialog.showModal();
    // A click next to the dialog closes it, as Escape does, which the browser handles.
    dialog.addEventListener("click", ({ target }) => target === dialog && dialog.close());
  }, []);
  useEffect(() => {
    document.getElementById(`${id}-${current}`)?.scrollIntoView({ block: "nearest" });
  }, [current]);
  const open = (item: Item | undefined) => {
    if (!item || !mayLeave(t("leaveUnsaved"))) return;
    // The browser returns the focus to where it was, and `onClose` follows.
    element.current?.close();
    route(pagePath(item.path));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const count = items.length;
    if (event.key === "Enter") open(items[current]);
    else if (event.key === "ArrowDown") setSelected(count === 0 ? 0 : (current + 1) % count);
    else if (event.key === "ArrowUp") setSelected(count === 0 ? 0 : (current + count - 1) % count);
    else return;
    event.preventDefault();
  };
  return (
    <dialog ref={element} class="palette" aria-label={t("goTo")} onClose={onClose}>
      <div class="palette-field">
        <Icon node={Search} />
        <input
          type="text"
          role="combobox"
          aria-label={t("goTo")}
          aria-expanded="true"
          aria-controls={`${id}-list`}
          aria-activedescendant={items.length > 0 ? `${id}-${current}` : undefined}
          placeholder={t("goToHint")}
          autocomplete="off"
          spellcheck={false}
          value={query}
          onInput={({ currentTarget }) => {
            setQuery(currentTarget.value);
            setSelected(0);
          }}
          onKeyDown={onKeyDown}
        />
      </div>
      <div id={`${id}-list`} role="listbox" aria-label={t("goTo")} class="palette-list">
        {items.map((item, index) => (
          <div
            key={item.key}
            id={`${id}-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === current}
            onClick={() => open(item)}
            onKeyDown={onKeyDown}
            onPointerMove={() => setSelected(index)}
          >
            <Icon node={item.icon} />
            <span>
              {item.title}
              {item.detail && <small>{item.detail}</small>}
            </span>
          </div>
        ))}
      </div>
      {items.length === 0 && !isPending && (
        <p class="empty" role="status">
          {t("nothingFound")}
        </p>
      )}
    </dialog>
  );
}

/** The button that opens the palette, which Ctrl-K and ⌘K do as well. */
export function PaletteButton() {
  const t = useTexts();
  // Counted, because a dialog reports that it was closed a moment later, when the next one may be open.
  const [opened, setOpened] = useState({ count: 0, isOpen: false });
  const open = () => setOpened(({ count }) => ({ count: count + 1, isOpen: true }));
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey)
        return;
      event.preventDefault();
      if (!document.querySelector(".palette[open]")) open();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  const { count } = opened;
  return (
    <>
      <button type="button" class="go-to" onClick={open}>
        <Icon node={Search} />
        <span>{t("goTo")}</span>
        <kbd>Ctrl K</kbd>
      </button>
      {opened.isOpen && (
        <Palette
          key={count}
          onClose={() => setOpened((now) => (now.count === count ? { count, isOpen: false } : now))}
        />
      )}
    </>
  );
}
