import { type ComponentChildren, createContext } from "preact";
import { useContext, useEffect, useState } from "preact/hooks";
import { vodbox } from "./api.ts";
import { isLanguage, useLanguage } from "./texts/texts.tsx";
import { isTheme, setTheme } from "./theme.ts";
import type { Session } from "./types.ts";

type Value = { tenantName: string | null; setTenantName(name: string): void };
const TenantNameContext = createContext<Value>({ tenantName: null, setTenantName() {} });

export const useTenantName = () => useContext(TenantNameContext);

/** Names the page, and the tenant of the session, in the title of the window. */
export function usePageTitle(title: string): void {
  const { tenantName } = useTenantName();
  useEffect(() => {
    document.title = `${title} · ${tenantName ?? "vodbox"}`;
  }, [title, tenantName]);
}

/** Loads what pages show of the session's tenant, and applies the language and theme of the person who is signed in. */
export function AccountProvider({ session, children }: { session: Session; children: ComponentChildren }) {
  const [tenantName, setTenantName] = useState<string | null>(null);
  const { choose } = useLanguage();
  const load = async () => {
    if (session.subject === "user") {
      const me = await vodbox.getMe();
      setTenantName(me.tenant_name);
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
  return <TenantNameContext.Provider value={{ tenantName, setTenantName }}>{children}</TenantNameContext.Provider>;
}
