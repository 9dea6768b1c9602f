import { type ComponentChildren, createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import { vodbox } from "./api.ts";
import { isLanguage, useLanguage } from "./texts/texts.tsx";
import { isTheme, setTheme } from "./theme.ts";
import type { Session } from "./types.ts";

type Value = {
  tenantName: string | null;
  setTenantName(name: string): void;
  /** Name or e-mail address of the person who is signed in; null for a key, and for the operator. */
  person: string | null;
};
const AccountContext = createContext<Value>({ tenantName: null, setTenantName() {}, person: null });

/** Who is signed in, and in which tenant. */
export const useAccount = () => useContext(AccountContext);

/** Names the page, and the tenant of the session, in the title of the window. */
export function usePageTitle(title: string): void {
  const { tenantName } = useAccount();
  useEffect(() => {
    document.title = `${title} · ${tenantName ?? "vodbox"}`;
  }, [title, tenantName]);
}

/** Loads what pages show of the session's tenant, and applies the language and theme of the person who is signed in. */
export function AccountProvider({ session, children }: { session: Session; children: ComponentChildren }) {
  const [tenantName, setTenantName] = useState<string | null>(null);
  const [person, setPerson] = useState<string | null>(null);
  const { choose } = useLanguage();
  const load = async () => {
    if (session.subject === "user") {
      const me = await vodbox.getMe();
      setTenantName(me.tenant_name);
      setPerson(me.name || me.email);
      if (isLanguage(me.language)) choose(me.language);
      if (isTheme(me.theme)) setTheme(me.theme);
    } else if (session.tenant_id !== null) {
      const [tenant] = await vodbox.listTenants({ limit: 1 });
      setTenantName(tenant?.name ?? null);
    }
  };
  useEffect(() => {
    // Pages work without them.
    load().catch(() => {});
  }, [session]);
  return <AccountContext.Provider value={{ tenantName, setTenantName, person }}>{children}</AccountContext.Provider>;
}
