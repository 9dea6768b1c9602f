import { vodbox } from "../../api.ts";
import { Field, Form } from "../../components/form.tsx";
import { Preferences } from "../../components/preferences.tsx";
import { useTexts } from "../../texts/texts.tsx";
import type { Session } from "../../types.ts";
import { texts } from "./texts.ts";

type Props = { onDone(session: Session): void; notice: "sessionEnded" | undefined };

/** A key of a tenant begins with `svc_`; anything else is the admin token. */
const credentialOf = ({ token = "", email = "", password = "" }: Record<string, string>): Record<string, string> => {
  if (token.trim() === "") return { email, password };
  return token.trim().startsWith("svc_") ? { api_key: token.trim() } : { admin_token: token.trim() };
};

export function SignIn({ onDone, notice }: Props) {
  const t = useTexts(texts);
  return (
    <main class="door">
      <h1>vodbox</h1>
      <p>{t("signInHint")}</p>
      {notice && (
        <p class="notice" role="alert">
          {t(notice)}
        </p>
      )}
      <Form
        submit={t("signIn")}
        onSubmit={async (values) => onDone(await vodbox.createSession({ body: credentialOf(values) }))}
      >
        <Field label={t("tokenOrKey")} name="token" type="password" autocomplete="off" />
        <p class="or">{t("or")}</p>
        <Field label={t("email")} name="email" type="email" autocomplete="username" />
        <Field label={t("password")} name="password" type="password" autocomplete="current-password" />
      </Form>
      <Preferences />
    </main>
  );
}
