import { useEffect, useRef, useState } from "preact/hooks";
import { ErrorBoundary } from "preact-iso/lazy";
import { Route, Router, useLocation } from "preact-iso/router";
import { BASE, pagePath } from "./base.ts";
import { ConnectionNotice } from "./components/connection.tsx";
import { useEventStream } from "./hooks/live.ts";
import { useDrops } from "./hooks/use-drops.ts";
import { mayLeave } from "./hooks/use-unsaved.ts";
import { Bell } from "./notifications/bell.tsx";
import { listedPages, PAGES } from "./page-list.ts";
import NotFound from "./pages/not-found.tsx";
import { useSession } from "./session.tsx";
import { Brand } from "./shell/brand.tsx";
import { Icon } from "./shell/icon.tsx";
import { PaletteButton } from "./shell/palette.tsx";
import { UserMenu } from "./shell/user-menu.tsx";
import { useTexts } from "./texts/texts.tsx";

/** Navigation and the current page. */
export function Frame() {
  const t = useTexts();
  const session = useSession();
  const { may } = session;
  useEventStream(may("assets:read") || may("webhooks:read"));
  const { path, route } = useLocation();
  const [isOpen, setOpen] = useState(false);
  const content = useRef<HTMLElement>(null);
  const links = listedPages(session.session);
  useEffect(() => {
    if ([`${BASE}/`, `${BASE}/console`, `${BASE}/console/`, pagePath("setup")].includes(path))
      route(pagePath("assets"), true);
  }, [path]);
  useDrops(may("assets:write") ? session.session.tenant_id : null, () => {
    if (mayLeave(t("leaveUnsaved"))) route(pagePath("uploads"));
  });
  const onRouteChange = () => {
    setOpen(false);
    // Screen readers and the keyboard continue at the new page.
    content.current?.focus();
  };
  return (
    <div class="frame">
      <a class="skip" href="#content">
        {t("skip")}
      </a>
      <header class="bar">
        <Brand />
        <button
          type="button"
          class="menu-button"
          aria-expanded={isOpen}
          aria-controls="navigation"
          onClick={() => setOpen(!isOpen)}
        >
          {t("menu")}
        </button>
      </header>
      <aside class={isOpen ? "side open" : "side"} id="navigation" aria-label={t("menu")}>
        <nav aria-label={t("pages")}>
          <Brand />
          <PaletteButton />
          <ul>
            {links.map(({ path: page, text, icon }) => (
              <li key={page}>
                <a href={pagePath(page)} aria-current={path.startsWith(pagePath(page)) ? "page" : undefined}>
                  <Icon node={icon} />
                  {t(text)}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <UserMenu />
      </aside>
      {session.session.subject === "user" && <Bell />}
      <main id="content" tabIndex={-1} ref={content}>
        <ConnectionNotice />
        <ErrorBoundary>
          <Router onRouteChange={onRouteChange}>
            {PAGES.map(({ path, component }) => (
              <Route key={path} path={pagePath(path)} component={component} />
            ))}
            <Route default component={NotFound} />
          </Router>
        </ErrorBoundary>
      </main>
    </div>
  );
}
