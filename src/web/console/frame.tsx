import { useEffect, useRef, useState } from "preact/hooks";
import lazy, { ErrorBoundary } from "preact-iso/lazy";
import { Route, Router, useLocation } from "preact-iso/router";
import { vodbox } from "./api.ts";
import { BASE, pagePath } from "./base.ts";
import { ConnectionNotice } from "./components/connection.tsx";
import { Preferences } from "./components/preferences.tsx";
import { useEventStream } from "./hooks/live.ts";
import { useDrops } from "./hooks/use-drops.ts";
import { Bell } from "./notifications/bell.tsx";
import { PAGES } from "./pages.ts";
import { useSession } from "./session.tsx";
import { useTexts } from "./texts/texts.tsx";

const NotFound = lazy(() => import("./pages/not-found.tsx"));

/** Navigation and the current page. */
export function Frame() {
  const t = useTexts();
  const session = useSession();
  const { may, signOut } = session;
  useEventStream(may("assets:read") || may("webhooks:read"));
  const { path, route } = useLocation();
  const [isOpen, setOpen] = useState(false);
  const content = useRef<HTMLElement>(null);
  useEffect(() => {
    if ([`${BASE}/`, `${BASE}/console`, `${BASE}/console/`, pagePath("setup")].includes(path))
      route(pagePath("assets"), true);
  }, [path]);
  // A choice that cannot be stored lasts in this browser.
  const store = (body: Parameters<typeof vodbox.updateMe>[0]["body"]) => void vodbox.updateMe({ body }).catch(() => {});
  useDrops(may("assets:write") ? session.session.tenant_id : null, () => route(pagePath("uploads")));
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
        <span class="brand">vodbox</span>
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
          <span class="brand">vodbox</span>
          <ul>
            {PAGES.map(
              ({ path: page, link, isFor }) =>
                link !== undefined &&
                (isFor?.(session) ?? true) && (
                  <li key={page}>
                    <a href={pagePath(page)} aria-current={path.startsWith(pagePath(page)) ? "page" : undefined}>
                      {t(link)}
                    </a>
                  </li>
                ),
            )}
          </ul>
        </nav>
        <div class="side-end">
          <Preferences onChoose={session.session.subject === "user" ? store : undefined} />
          <button type="button" class="quiet" onClick={signOut}>
            {t("signOut")}
          </button>
        </div>
      </aside>
      {session.session.subject === "user" && <Bell />}
      <main id="content" tabIndex={-1} ref={content}>
        <ConnectionNotice />
        <ErrorBoundary>
          <Router onRouteChange={onRouteChange}>
            {PAGES.map(({ path: page, component }) => (
              <Route key={page} path={pagePath(page)} component={component} />
            ))}
            <Route default component={NotFound} />
          </Router>
        </ErrorBoundary>
      </main>
    </div>
  );
}
