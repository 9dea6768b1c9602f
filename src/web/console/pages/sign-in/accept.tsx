import { vodbox } from "#web/console/api.ts";
import { pagePath } from "#web/console/base.ts";
import { Field, Form } from "#web/console/components/form.tsx";
import { NewPassword } from "#web/console/components/new-password.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { useResource } from "#web/console/hooks/use-resource.ts";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Session } from "#web/console/types.ts";
import { Door } from "./door.tsx";
import { texts } from "./texts.ts";

/** The page of an invitation's address. */
export function Accept({ code, onDone }: { code: string; onDone(session: Session): void }) {
  const t = useTexts(texts);
  const { value: invited, error, reload } = useResource(() => vodbox.getInvitation({ code }), [code]);
  return (
    <Door title={t("invitation")}>
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
    </Door>
  );
}
