import {
  Activity as ActivityIcon,
  Building2,
  ChartLine,
  CircleUser,
  Clapperboard,
  Gauge,
  type IconNode,
  Import,
  KeyRound,
  ListChecks,
  Radio,
  Server,
  Settings as SettingsIcon,
  Upload,
  UsersRound,
  Webhook as WebhookIcon,
} from "lucide";
import type { ComponentType } from "preact";
import lazy from "preact-iso/lazy";
import type { CommonText } from "./texts/texts.tsx";
import type { Session } from "./types.ts";

type Loaded = () => Promise<{ default: ComponentType }>;

/** Whether this is a build for development (scripts/build/console.ts). */
declare const IS_DEVELOPMENT: boolean;

/** One page of the console. */
export type Page = {
  /** Below `/console/`, with parameters as `:id`. */
  path: string;
  component: ComponentType;
  /** Its name in the navigation; a page without one is reached from another page. */
  text?: CommonText;
  icon?: IconNode;
  /** Sessions that see it in the navigation; all by default. The server decides what each may do. */
  for?: (session: Session) => boolean;
};

const operators = ({ subject }: Session) => subject === "admin";
const adminsOfTenants = ({ role }: Session) => role === "admin";
const editors = ({ role }: Session) => role !== "viewer";
const people = ({ role }: Session) => role !== null;

const page = (path: string, load: Loaded, shown: Pick<Page, "text" | "icon" | "for"> = {}): Page => ({
  path,
  component: lazy(load),
  ...shown,
});

/** All pages, in the order of the navigation: each with its path, what loads it, and who sees it. */
export const PAGES: readonly Page[] = [
  page("assets", () => import("./pages/assets/assets.tsx"), { text: "assets", icon: Clapperboard }),
  page("assets/:id", () => import("./pages/asset/asset.tsx")),
  page("uploads", () => import("./pages/uploads/uploads.tsx"), { text: "uploads", icon: Upload }),
  page("import", () => import("./pages/import/import.tsx"), { text: "import", icon: Import, for: editors }),
  page("jobs", () => import("./pages/jobs/jobs.tsx"), { text: "jobs", icon: ListChecks }),
  page("webhooks", () => import("./pages/webhooks/webhooks.tsx"), { text: "webhooks", icon: WebhookIcon }),
  page("webhooks/:id", () => import("./pages/webhooks/webhook.tsx")),
  page("analytics", () => import("./pages/analytics/analytics.tsx"), { text: "analytics", icon: ChartLine }),
  page("analytics/now", () => import("./pages/analytics/now.tsx")),
  page("live", () => import("./pages/live/live.tsx"), { text: "live", icon: Radio }),
  page("live/:id", () => import("./pages/live/channel.tsx")),
  page("live/:id/studio", () => import("./pages/live/studio.tsx")),
  page("tenants", () => import("./pages/tenants/tenants.tsx"), { text: "tenants", icon: Building2, for: operators }),
  page("tenants/:ref", () => import("./pages/tenants/tenant.tsx")),
  page("keys", () => import("./pages/keys/keys.tsx"), { text: "apiKeys", icon: KeyRound }),
  page("users", () => import("./pages/users/users.tsx"), { text: "users", icon: UsersRound, for: adminsOfTenants }),
  page("settings", () => import("./pages/settings/settings.tsx"), {
    text: "settings",
    icon: SettingsIcon,
    for: adminsOfTenants,
  }),
  page("activity", () => import("./pages/activity/activity.tsx"), {
    text: "activity",
    icon: ActivityIcon,
    for: adminsOfTenants,
  }),
  page("usage", () => import("./pages/usage/usage.tsx"), { text: "usage", icon: Gauge }),
  page("system", () => import("./pages/system/system.tsx"), { text: "system", icon: Server, for: operators }),
  ...(IS_DEVELOPMENT ? [page("design", () => import("./pages/design/design.tsx"))] : []),
  page("account", () => import("./pages/account/account.tsx"), { text: "account", icon: CircleUser, for: people }),
];

export type ListedPage = Page & Required<Pick<Page, "text" | "icon">>;
/** The pages that a session has in its navigation. */
export const listedPages = (session: Session): ListedPage[] =>
  PAGES.filter(
    (one): one is ListedPage => one.text !== undefined && one.icon !== undefined && (one.for?.(session) ?? true),
  );
