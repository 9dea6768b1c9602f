import { useEffect, useState } from "preact/hooks";
import { LocationProvider, useLocation } from "preact-iso/router";
import { VodboxError } from "#clients/typescript/error.ts";
import { setCsrfToken, vodbox, whenSessionEnds } from "./api.ts";
import { BASE, pagePath } from "./base.ts";
import { ErrorNotice } from "./components/notice.tsx";
import { ToastProvider } from "./components/toast.tsx";
import { Frame } from "./frame.tsx";
import { AccountProvider } from "./page-title.tsx";
import { Accept } from "./pages/sign-in/accept.tsx";
import { ResetPassword } from "./pages/sign-in/reset-password.tsx";
import { SetUp } from "./pages/sign-in/set-up.tsx";
import { SignIn } from "./pages/sign-in/sign-in.tsx";
import { SessionProvider } from "./session.tsx";
import { LanguageProvider, useTexts } from "./texts/texts.tsx";
import type { Session } from "./types.ts";

export const App = () => (
  <LanguageProvider>
    <ToastProvider>
      <LocationProvider scope={`${BASE}/console`}>
        <Door />
      </LocationProvider>
    </ToastProvider>
  </LanguageProvider>
);

type State =
  | { name: "loading" }
  | { name: "outside"; notice?: "sessionEnded" }
  | { name: "inside"; session: Session }
  | { name: "unreachable"; error: unknown };

/** The sign-in, or the pages behind it. */
function Door() {
  const t = useTexts();
  const { route } = useLocation();
  const [state, setState] = useState<State>({ name: "loading" });
  const [, code] = location.pathname.split(`${BASE}/console/invitation/`);
  const [, reset] = location.pathname.split(`${BASE}/console/reset/`);
  const isSetUp = location.pathname === `${BASE}/console/setup`;

  const enter = (session: Session) => {
    setCsrfToken(session.csrf_token);
    setState({ name: "inside", session });
  };
  const leave = (notice?: "sessionEnded") => {
    setCsrfToken(null);
    setState({ name: "outside", ...(notice && { notice }) });
  };
  const load = async () => {
    setState({ name: "loading" });
    try {
      enter(await vodbox.getSession());
    } catch (error) {
      if (error instanceof VodboxError && error.status === 401) leave();
      else setState({ name: "unreachable", error });
    }
  };
  useEffect(() => {
    whenSessionEnds(() => leave("sessionEnded"));
    void load();
  }, []);

  if (state.name === "loading") return <p class="centered">{t("loading")}</p>;
  if (state.name === "unreachable")
    return (
      <div class="centered">
        <ErrorNotice error={state.error} onRetry={load} />
      </div>
    );
  if (state.name === "outside" && code)
    return (
      <Accept
        code={code}
        onDone={(session) => {
          route(pagePath("assets"), true);
          enter(session);
        }}
      />
    );
  if (state.name === "outside" && reset)
    return <ResetPassword code={reset} onDone={() => route(pagePath("assets"), true)} />;
  if (state.name === "outside")
    return isSetUp ? <SetUp onDone={enter} /> : <SignIn onDone={enter} notice={state.notice} />;
  const signOut = async () => {
    await vodbox.deleteSession().catch(() => {});
    // The next person starts at the first page.
    route(pagePath("assets"), true);
    leave();
  };
  return (
    <SessionProvider value={{ session: state.session, signOut }}>
      <AccountProvider session={state.session}>
        <Frame />
      </AccountProvider>
    </SessionProvider>
  );
}
