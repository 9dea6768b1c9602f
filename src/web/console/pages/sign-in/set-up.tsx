import { vodbox } from "../../api.ts";
import { Field, Form } from "../../components/form.tsx";
import { NewPassword } from "../../components/new-password.tsx";
import { Preferences } from "../../components/preferences.tsx";
import { usePageTitle } from "../../page-title.tsx";
import { useTexts } from "../../texts/texts.tsx";
import type { Session } from "../../types.ts";
import { texts } from "./texts.ts";

/** The first page of a new server, at the address that its first start prints. */
export function SetUp({ onDone }: { onDone(session: Session): void }) {
  const t = useTexts(texts);
  usePageTitle(t("setUp"));
  const code = new URLSearchParams(location.search).get("code") ?? "";
  const create = async ({ name = "", email = "", password = "" }: Record<string, string>) =>
    onDone(await vodbox.setUpServer({ body: { name, email, password, code } }));
  return (
    <main class="door">
      <h1>{t("setUp")}</h1>
      <p>{t("setUpHint")}</p>
      <Form submit={t("create")} onSubmit={create}>
        <Field label={t("name")} name="name" required autocomplete="organization" />
        <Field label={t("email")} name="email" type="email" required autocomplete="username" />
        <NewPassword />
      </Form>
      <p class="fine">{t("setUpUsed")}</p>
      <Preferences />
    </main>
  );
}
