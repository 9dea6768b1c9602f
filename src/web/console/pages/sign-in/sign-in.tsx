import { useState } from "preact/hooks";
import { VodboxError } from "#clients/typescript/error.ts";
import { vodbox } from "#web/console/api.ts";
import { BASE, OIDC_NAME } from "#web/console/base.ts";
import { CodeField } from "#web/console/components/code-field.tsx";
import { Field, Form } from "#web/console/components/form.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Session } from "#web/console/types.ts";
import { Door } from "./door.tsx";
import { ForgotPassword } from "./forgot-password.tsx";
import { texts } from "./texts.ts";

type Props = { onDone(session: Session): void; notice: "sessionEnded" | undefined };

/** A key of a tenant begins with `svc_`; anything else is the admin token. */
const credentialOf = ({
  token = "",
  email = "",
  password = "",
  totp,
}: Record<string, string>): Record<string, string> => {
  if (token.trim() === "") return { email, password, ...(totp && { totp }) };
  return token.trim().startsWith("svc_") ? { api_key: token.trim() } : { admin_token: token.trim() };
};

/** By `oidc_error`. */
const REASONS: Record<string, "oidcRefused" | "oidcUnavailable"> = {
  refused: "oidcRefused",
  unavailable: "oidcUnavailable",
};

export function SignIn({ onDone, notice }: Props) {
  const t = useTexts(texts);
  // The callback of the OpenID provider names the reason.
  const failed = new URLSearchParams(location.search).get("oidc_error");
  const refusal = failed === null ? null : (REASONS[failed] ?? "oidcFailed");
  const [needsCode, setNeedsCode] = useState(false);
  const send = async (values: Record<string, string>) => {
    try {
      onDone(await vodbox.createSession({ body: credentialOf(values) }));
    } catch (error) {
      if (!(error instanceof VodboxError && error.code === "totp_required")) throw error;
      setNeedsCode(true);
    }
  };
  return (
    <Door title={t("signInTitle")} windowTitle={t("signIn")}>
      {refusal && (
        <p class="notice error" role="alert">
          {t(refusal)}
        </p>
      )}
      {notice && (
        <p class="notice" role="alert">
          {t(notice)}
        </p>
      )}
      <Form submit={t("signIn")} onSubmit={send}>
        <Field label={t("email")} name="email" type="email" autocomplete="username" />
        <Field label={t("password")} name="password" type="password" autocomplete="current-password" />
        {needsCode && <CodeField />}
        <p class="or">{t("or")}</p>
        <Field label={t("tokenOrKey")} name="token" type="password" autocomplete="off" />
      </Form>
      {OIDC_NAME !== undefined && (
        <a class="button" href={`${BASE}/api/v1/session/oidc/start`}>
          {t("signInWith", { name: OIDC_NAME })}
        </a>
      )}
      <ForgotPassword />
    </Door>
  );
}
