import { vodbox } from "#web/console/api.ts";
import { Field, Form } from "#web/console/components/form.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { PageHead } from "#web/console/components/page-head.tsx";
import { useToast } from "#web/console/components/toast.tsx";
import { useResource } from "#web/console/hooks/use-resource.ts";
import { NotificationChoices } from "#web/console/notifications/choices.tsx";
import { useSession } from "#web/console/session.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import { roleText } from "../users/roles.ts";
import { ChangePassword } from "./change-password.tsx";
import { SecondFactor } from "./second-factor.tsx";
import { Sessions } from "./sessions.tsx";
import { texts } from "./texts.ts";

/** The account of the person who is signed in. */
export default function Account() {
  const t = useTexts(texts);
  const toast = useToast();
  const { session } = useSession();
  const isUser = session.subject === "user";
  const me = useResource(async () => (isUser ? vodbox.getMe() : null), [isUser]);
  if (!isUser)
    return (
      <>
        <PageHead title={t("account")} />
        <p>{t("noUser")}</p>
      </>
    );
  return (
    <>
      <PageHead title={t("account")} />
      <ErrorNotice error={me.error} onRetry={me.reload} />
      {me.value && (
        <>
          <p>{t("signedInAs", { tenant: me.value.tenant_name, role: t(roleText(me.value.role)) })}</p>
          <section aria-labelledby="profile">
            <h2 id="profile">{t("profile")}</h2>
            <Form
              submit={t("save")}
              asksBeforeLeaving
              onSubmit={async ({ name = "", email = "" }) => {
                me.set(await vodbox.updateMe({ body: { name: name || null, email } }));
                toast(t("saved"));
              }}
            >
              <Field label={t("name")} name="name" value={me.value.name ?? ""} autocomplete="name" />
              <Field
                label={t("email")}
                name="email"
                type="email"
                value={me.value.email}
                required
                autocomplete="username"
              />
            </Form>
          </section>
          <ChangePassword />
          <SecondFactor isOn={me.value.totp_enabled} onChange={me.reload} />
          <NotificationChoices />
          <Sessions />
        </>
      )}
    </>
  );
}
