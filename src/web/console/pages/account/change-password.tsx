import { useState } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { Field, Form } from "#web/console/components/form.tsx";
import { NewPassword } from "#web/console/components/new-password.tsx";
import { useToast } from "#web/console/components/toast.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import { texts } from "./texts.ts";

export function ChangePassword() {
  const t = useTexts(texts);
  const toast = useToast();
  // A new form is an empty one.
  const [changes, setChanges] = useState(0);
  return (
    <section aria-labelledby="change-password">
      <h2 id="change-password">{t("changePassword")}</h2>
      <p class="fine">{t("passwordEnds")}</p>
      <Form
        key={changes}
        submit={t("changePassword")}
        onSubmit={async ({ current = "", next = "" }) => {
          await vodbox.changeMyPassword({ body: { current_password: current, new_password: next } });
          setChanges((count) => count + 1);
          toast(t("passwordChanged"));
        }}
      >
        <Field label={t("currentPassword")} name="current" type="password" required autocomplete="current-password" />
        <NewPassword label={t("newPassword")} name="next" />
      </Form>
    </section>
  );
}
