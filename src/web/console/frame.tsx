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
import { useSession } from "./session.tsx";
import { type CommonText, useTexts } from "./texts/texts.tsx";

const Assets = lazy(() => import("./pages/assets/assets.tsx"));
const Asset = lazy(() => import("./pages/asset/asset.tsx"));
const Uploads = lazy(() => import("./pages/uploads/uploads.tsx"));
const Jobs = lazy(() => import("./pages/jobs/jobs.tsx"));
const Webhooks = lazy(() => import("./pages/webhooks/webhooks.tsx"));
const Webhook = lazy(() => import("./pages/webhooks/webhook.tsx"));
const Analytics = lazy(() => import("./pages/analytics/analytics.tsx"));
const Live = lazy(() => import("./pages/live/live.tsx"));
const Channel = lazy(() => import("./pages/live/channel.tsx"));
const Studio = lazy(() => import("./pages/live/studio.tsx"));
const Tenants = lazy(() => import("./pages/tenants/tenants.tsx"));
const Tenant = lazy(() => import("./pages/tenants/tenant.tsx"));
const Keys = lazy(() => import("./pages/keys/keys.tsx"));
const Users = lazy(() => import("./pages/users/users.tsx"));
const Settings = lazy(() => import("./pages/settings/settings.tsx"));
const Activity = lazy(() => import("./pages/activity/activity.tsx"));
const Account = lazy(() => import("./pages/account/account.tsx"));
const Usage = lazy(() => import("./pages/usage/usage.tsx"));
const System = lazy(() => import("./pages/system/system.tsx"));
const NotFound = lazy(() => import("./pages/not-found.tsx"));

/** `ofAdmin`: for the operator; `of`: for sessions of this kind. */
type Link = {
  page: string;
  text: CommonText;
  ofAdmin?: true;
  of?: (session: ReturnType<typeof useSession>) => boolean;
};
const LINKS: readonly Link[] = [
  { page: "assets", text: "assets" },
  { page: "uploads", text: "uploads" },
  { page: "jobs", text: "jobs" },
  { page: "webhooks", text: "webhooks" },
  { page: "analytics", text: "analytics" },
  { page: "live", text: "live" },
  { page: "tenants", text: "tenants", ofAdmin: true },
  { page: "keys", text: "apiKeys" },
  { page: "users", text: "users", of: ({ role }) => role === "admin" },
  { page: "settings", text: "settings", of: ({ role }) => role === "admin" },
  { page: "activity", text: "activity", of: ({ role }) => role === "admin" },
  { page: "usage", text: "usage" },
  { page: "system", text: "system", ofAdmin: true },
  { page: "account", text: "account", of: ({ role }) => role !== null },
];

/** Navigation and the current page. */
export function Frame() {
  const t = useTexts();
  const session = useSession();
  const { isAdmin, may, signOut } = session;
  useEventStream(may("assets:read") || may("webhooks:read"));
  const { path, route } = useLocation();
  const [isOpen, setOpen] = useState(false);
  const content = useRef<HTMLElement>(null);
  const links = LINKS.filter(({ ofAdmin, of }) => (isAdmin || !ofAdmin) && (of?.(session) ?? true));
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
            {links.map(({ page, text }) => (
              <li key={page}>
                <a href={pagePath(page)} aria-current={path.startsWith(pagePath(page)) ? "page" : undefined}>
                  {t(text)}
                </a>
              </li>
            ))}
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
            <Route path={pagePath("assets")} component={Assets} />
            <Route path={pagePath("assets/:id")} component={Asset} />
            <Route path={pagePath("uploads")} component={Uploads} />
            <Route path={pagePath("jobs")} component={Jobs} />
            <Route path={pagePath("webhooks")} component={Webhooks} />
            <Route path={pagePath("webhooks/:id")} component={Webhook} />
            <Route path={pagePath("analytics")} component={Analytics} />
            <Route path={pagePath("live")} component={Live} />
            <Route path={pagePath("live/:id")} component={Channel} />
            <Route path={pagePath("live/:id/studio")} component={Studio} />
            <Route path={pagePath("tenants")} component={Tenants} />
            <Route path={pagePath("tenants/:ref")} component={Tenant} />
            <Route path={pagePath("keys")} component={Keys} />
            <Route path={pagePath("users")} component={Users} />
            <Route path={pagePath("settings")} component={Settings} />
            <Route path={pagePath("activity")} component={Activity} />
            <Route path={pagePath("account")} component={Account} />
            <Route path={pagePath("usage")} component={Usage} />
            <Route path={pagePath("system")} component={System} />
            <Route default component={NotFound} />
          </Router>
        </ErrorBoundary>
      </main>
    </div>
  );
}
