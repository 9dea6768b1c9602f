import { vodbox } from "../../api.ts";
import { pagePath } from "../../base.ts";
import { Field, Form } from "../../components/form.tsx";
import { NewPassword } from "../../components/new-password.tsx";
import { ErrorNotice } from "../../components/notice.tsx";
import { Preferences } from "../../components/preferences.tsx";
import { useResource } from "../../hooks/use-resource.ts";
import { usePageTitle } from "../../page-title.tsx";
import { useTexts } from "../../texts/texts.tsx";
import type { Session } from "../../types.ts";
import { texts } from "./texts.ts";

/** The page of an invitation's address. */
export function Accept({ code, onDone }: { code: string; onDone(session: Session): void }) {
  const t = useTexts(texts);
  usePageTitle(t("invitation"));
  const { value: invited, error, reload } = useResource(() => vodbox.getInvitation({ code }), [code]);
  return (
    <main class="door">
      <h1>{t("invitation")}</h1>
      <ErrorNotice error={error} onRetry={reload} />
      {error !== null && <a href={pagePath("assets")}>{t("signIn")}</a>}
      {invited && (
        <>
          <p>{t("invitedTo", { tenant: invited.tenant_name, email: invited.email })}</p>
          <Form
            submit={t("join")}
            onSubmit={async ({ name = "", password = "" }) =>
              onDone(await vodbox.acceptInvitation({ code, body: { name, password } }))
            }
          >
            <Field label={t("yourName")} name="name" required autocomplete="name" />
            <NewPassword />
          </Form>
        </>
      )}
      <Preferences />
    </main>
  );
}
