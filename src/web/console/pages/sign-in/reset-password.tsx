import { useState } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { pagePath } from "#web/console/base.ts";
import { Form } from "#web/console/components/form.tsx";
import { NewPassword } from "#web/console/components/new-password.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import { Door } from "./door.tsx";
import { texts } from "./texts.ts";

/** The page of the link with which a user sets a new password. */
export function ResetPassword({ code, onDone }: { code: string; onDone(): void }) {
  const t = useTexts(texts);
  const [isDone, setDone] = useState(false);
  const toSignIn = (event: MouseEvent) => {
    event.preventDefault();
    onDone();
  };
  return (
    <Door title={t("resetPassword")}>
      {isDone ? (
        <p role="status">{t("passwordSet")}</p>
      ) : (
        <Form
          submit={t("save")}
          onSubmit={async ({ password = "" }) => {
            await vodbox.resetPassword({ code, body: { new_password: password } });
            setDone(true);
          }}
        >
          <NewPassword label={t("newPassword")} />
        </Form>
      )}
      <a href={pagePath("assets")} onClick={toSignIn}>
        {t("signIn")}
      </a>
    </Door>
  );
}
