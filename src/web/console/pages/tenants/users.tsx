import { useState } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { ConfirmDialog, Dialog } from "#web/console/components/dialog.tsx";
import { Field, Form } from "#web/console/components/form.tsx";
import { ListView } from "#web/console/components/list-view.tsx";
import { NewPassword } from "#web/console/components/new-password.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { ShownOnce } from "#web/console/components/shown-once.tsx";
import { Table } from "#web/console/components/table.tsx";
import { Time } from "#web/console/components/time.tsx";
import { useToast } from "#web/console/components/toast.tsx";
import { dateTime } from "#web/console/format.ts";
import { useAttempt } from "#web/console/hooks/use-attempt.ts";
import { useList } from "#web/console/hooks/use-list.ts";
import { useLanguage, useTexts } from "#web/console/texts/texts.tsx";
import type { PairingCode, User } from "#web/console/types.ts";
import { texts } from "./texts.ts";

type Question = { user: User; action: "password" | "delete" };

/** People who sign in to a tenant's console and apps, and the pairing of devices. */
export function Users({ tenantId }: { tenantId: number }) {
  const t = useTexts(texts);
  const { language } = useLanguage();
  const toast = useToast();
  const { failure, attempt } = useAttempt();
  const [isNew, setNew] = useState(false);
  const [question, setQuestion] = useState<Question | null>(null);
  const [pairing, setPairing] = useState<PairingCode | null>(null);
  const list = useList(() => vodbox.listUsers({ tenant_id: tenantId }), [tenantId]);
  const close = () => setQuestion(null);
  return (
    <section aria-labelledby="users">
      <div class="page-head">
        <h2 id="users">{t("users")}</h2>
        <div class="row">
          <button type="button" class="primary" onClick={() => setNew(true)}>
            {t("newUser")}
          </button>
          <button
            type="button"
            onClick={() =>
              attempt(async () => setPairing(await vodbox.createPairingCode({ body: { tenant_id: tenantId } })))
            }
          >
            {t("pairDevice")}
          </button>
        </div>
      </div>
      <ErrorNotice error={failure} />
      {pairing && (
        <ShownOnce
          text={t("pairingHint", { time: dateTime(pairing.expires_at, language) })}
          secret={pairing.pairing_code}
        />
      )}
      <ListView list={list} empty={t("noUsers")}>
        {(items) => (
          <Table
            items={items}
            columns={[
              { title: t("email"), cell: ({ email_address }) => email_address },
              { title: t("created"), cell: ({ created_at }) => <Time at={created_at} /> },
              {
                title: t("actions"),
                cell: (user) => (
                  <span class="row">
                    <button type="button" onClick={() => setQuestion({ user, action: "password" })}>
                      {t("newPassword")}
                    </button>
                    <button type="button" onClick={() => setQuestion({ user, action: "delete" })}>
                      {t("delete")}
                    </button>
                  </span>
                ),
              },
            ]}
          />
        )}
      </ListView>
      {isNew && (
        <Dialog title={t("newUser")} onClose={() => setNew(false)}>
          <Form
            submit={t("create")}
            onSubmit={async ({ email = "", password = "" }) => {
              await vodbox.createUser({ body: { tenant_id: tenantId, email_address: email, password } });
              setNew(false);
              list.reload();
            }}
          >
            <Field label={t("email")} name="email" type="email" required autocomplete="off" />
            <NewPassword />
          </Form>
        </Dialog>
      )}
      {question?.action === "password" && (
        <Dialog title={`${t("newPassword")}: ${question.user.email_address}`} onClose={close}>
          <p>{t("passwordEndsSessions")}</p>
          <Form
            submit={t("save")}
            onSubmit={async ({ password = "" }) => {
              await vodbox.updateUser({ ref: String(question.user.id), body: { password } });
              close();
              toast(t("saved"));
            }}
          >
            <NewPassword />
          </Form>
        </Dialog>
      )}
      {question?.action === "delete" && (
        <ConfirmDialog
          text={t("deleteUser", { email: question.user.email_address })}
          onConfirm={async () => {
            close();
            await attempt(() => vodbox.deleteUser({ ref: String(question.user.id) }));
            list.reload();
          }}
          onClose={close}
        />
      )}
    </section>
  );
}
