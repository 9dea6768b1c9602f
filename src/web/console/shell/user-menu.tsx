import { BookOpen, Braces, ChevronsUpDown, LogOut } from "lucide";
import { useId } from "preact/hooks";
import { vodbox } from "../api.ts";
import { BASE } from "../base.ts";
import { Preferences } from "../components/preferences.tsx";
import { useAccount } from "../page-title.tsx";
import { useSession } from "../session.tsx";
import { useTexts } from "../texts/texts.tsx";
import { Icon } from "./icon.tsx";

/** Who is signed in and where, what they chose, and the way out. The browser closes the menu by Escape and a click elsewhere. */
export function UserMenu() {
  const t = useTexts();
  const id = useId();
  const { session, signOut } = useSession();
  const { person, tenantName } = useAccount();
  const isUser = session.subject === "user";
  const name = person ?? (session.subject === "admin" ? t("operator") : t("apiKey"));
  // A choice that cannot be stored lasts in this browser.
  const store = (body: Parameters<typeof vodbox.updateMe>[0]["body"]) => void vodbox.updateMe({ body }).catch(() => {});
  return (
    <div class="side-end">
      <button type="button" class="user" popovertarget={id} title={t("preferences")}>
        <span class="initial" aria-hidden="true">
          {[...name][0]?.toUpperCase()}
        </span>
        <span class="who">
          <strong>{name}</strong>
          <span>{tenantName ?? t("allTenants")}</span>
        </span>
        <Icon node={ChevronsUpDown} />
      </button>
      <div id={id} popover="auto" class="user-menu" role="dialog" aria-label={t("preferences")}>
        <Preferences onChoose={isUser ? store : undefined} />
        <a href={`${BASE}/docs/guide`} target="_blank" rel="noreferrer">
          <Icon node={BookOpen} />
          {t("guide")}
        </a>
        <a href={`${BASE}/docs`} target="_blank" rel="noreferrer">
          <Icon node={Braces} />
          {t("apiReference")}
        </a>
      </div>
      <button type="button" class="quiet sign-out" onClick={signOut}>
        <Icon node={LogOut} />
        {t("signOut")}
      </button>
    </div>
  );
}
