import { vodbox } from "#web/console/api.ts";
import { Field, Form } from "#web/console/components/form.tsx";
import { NewPassword } from "#web/console/components/new-password.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Session } from "#web/console/types.ts";
import { Door } from "./door.tsx";
import { texts } from "./texts.ts";

/** The first page of a new server, at the address that its first start prints. */
export function SetUp({ onDone }: { onDone(session: Session): void }) {
  const t = useTexts(texts);
  const code = new URLSearchParams(location.search).get("code") ?? "";
  const create = async ({ name = "", email = "", password = "" }: Record<string, string>) =>
    onDone(await vodbox.setUpServer({ body: { name, email, password, code } }));
  return (
    <Door title={t("setUp")} hint={t("setUpHint")}>
      <Form submit={t("create")} onSubmit={create}>
        <Field label={t("name")} name="name" required autocomplete="organization" />
        <Field label={t("email")} name="email" type="email" required autocomplete="username" />
        <NewPassword />
      </Form>
      <p class="fine">{t("setUpUsed")}</p>
    </Door>
  );
}
