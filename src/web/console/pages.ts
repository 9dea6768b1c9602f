import type { FunctionComponent } from "preact";
import lazy from "preact-iso/lazy";
import type { useSession } from "./session.tsx";
import type { CommonText } from "./texts/texts.tsx";

type Session = ReturnType<typeof useSession>;

export type ConsolePage = {
  /** Below `/console/`, with parameters such as `:id`. */
  path: string;
  /** Loaded when the page is opened. */
  component: FunctionComponent;
  /** Its name in the navigation, in this order; a page without one is reached from another. */
  link?: CommonText;
  /** Who has the link; default: everybody. The server refuses what a session may not do. */
  isFor?: (session: Session) => boolean;
};

const isOperator = ({ isAdmin }: Session) => isAdmin;
const isTenantAdmin = ({ role }: Session) => role === "admin";
const isPerson = ({ role }: Session) => role !== null;

/** All pages behind the sign-in. */
export const PAGES: readonly ConsolePage[] = [
  { path: "assets", link: "assets", component: lazy(() => import("./pages/assets/assets.tsx")) },
  { path: "assets/:id", component: lazy(() => import("./pages/asset/asset.tsx")) },
  { path: "uploads", link: "uploads", component: lazy(() => import("./pages/uploads/uploads.tsx")) },
  { path: "jobs", link: "jobs", component: lazy(() => import("./pages/jobs/jobs.tsx")) },
  { path: "webhooks", link: "webhooks", component: lazy(() => import("./pages/webhooks/webhooks.tsx")) },
  { path: "webhooks/:id", component: lazy(() => import("./pages/webhooks/webhook.tsx")) },
  { path: "analytics", link: "analytics", component: lazy(() => import("./pages/analytics/analytics.tsx")) },
  { path: "live", link: "live", component: lazy(() => import("./pages/live/live.tsx")) },
  { path: "live/:id", component: lazy(() => import("./pages/live/channel.tsx")) },
  { path: "live/:id/studio", component: lazy(() => import("./pages/live/studio.tsx")) },
  { path: "tenants", link: "tenants", isFor: isOperator, component: lazy(() => import("./pages/tenants/tenants.tsx")) },
  { path: "tenants/:ref", component: lazy(() => import("./pages/tenants/tenant.tsx")) },
  { path: "keys", link: "apiKeys", component: lazy(() => import("./pages/keys/keys.tsx")) },
  { path: "users", link: "users", isFor: isTenantAdmin, component: lazy(() => import("./pages/users/users.tsx")) },
  {
    path: "settings",
    link: "settings",
    isFor: isTenantAdmin,
    component: lazy(() => import("./pages/settings/settings.tsx")),
  },
  {
    path: "activity",
    link: "activity",
    isFor: isTenantAdmin,
    component: lazy(() => import("./pages/activity/activity.tsx")),
  },
  { path: "usage", link: "usage", component: lazy(() => import("./pages/usage/usage.tsx")) },
  { path: "system", link: "system", isFor: isOperator, component: lazy(() => import("./pages/system/system.tsx")) },
  { path: "account", link: "account", isFor: isPerson, component: lazy(() => import("./pages/account/account.tsx")) },
];
