import { type ComponentChildren, createContext } from "preact";
import { useContext } from "preact/hooks";
import type { Session } from "./types.ts";

type Value = { session: Session; signOut(): void };
const SessionContext = createContext<Value | null>(null);

export const SessionProvider = ({ value, children }: { value: Value; children: ComponentChildren }) => (
  <SessionContext.Provider value={value}>{children}</SessionContext.Provider>
);

/** The session of the pages behind the sign-in. */
export function useSession() {
  const value = useContext(SessionContext);
  if (value === null) throw new Error("There is no session.");
  const { session } = value;
  return {
    ...value,
    role: session.role,
    isAdmin: session.subject === "admin",
    may: (scope: string) => session.scopes.includes(scope),
  };
}
