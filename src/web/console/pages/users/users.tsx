import { useState } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { ConfirmDialog, Dialog } from "#web/console/components/dialog.tsx";
import { Field, Form, Select } from "#web/console/components/form.tsx";
import { ListView } from "#web/console/components/list-view.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { PageHead } from "#web/console/components/page-head.tsx";
import { ShownOnce } from "#web/console/components/shown-once.tsx";
import { Table } from "#web/console/components/table.tsx";
import { Time } from "#web/console/components/time.tsx";
import { useToast } from "#web/console/components/toast.tsx";
import { dateTime } from "#web/console/format.ts";
import { useAttempt } from "#web/console/hooks/use-attempt.ts";
import { useList } from "#web/console/hooks/use-list.ts";
import { useLanguage, useTexts } from "#web/console/texts/texts.tsx";
import type { NewInvitation, Role, TenantUser } from "#web/console/types.ts";
import { Invitations } from "./invitations.tsx";
import { ROLES, roleText } from "./roles.ts";
import { texts } from "./texts.ts";

/** The people of the tenant, for its admins. */
export default function Users() {
  const t = useTexts(texts);
  const { language } = useLanguage();
  const toast = useToast();
  const { failure, attempt } = useAttempt();
  const [isInviting, setInviting] = useState(false);
  const [invited, setInvited] = useState<NewInvitation | null>(null);
  const [edited, setEdited] = useState<TenantUser | null>(null);
  const [deleted, setDeleted] = useState<TenantUser | null>(null);
  const list = useList(() => vodbox.listTenantUsers(), []);
  const invitations = useList(() => vodbox.listInvitations(), []);
  return (
    <>
      <PageHead title={t("users")}>
        <button type="button" class="primary" onClick={() => setInviting(true)}>
          {t("invite")}
        </button>
      </PageHead>
      {invited && (
        <ShownOnce
          text={t("invitationHint", { time: dateTime(invited.expires_at, language) })}
          secret={invited.url ?? ""}
        />
      )}
      <ErrorNotice error={failure} />
      <ListView list={list} empty={t("noUsers")}>
        {(items) => (
          <Table
            items={items}
            columns={[
              { title: t("personName"), cell: ({ name }) => name ?? "–" },
              { title: t("email"), cell: ({ email }) => email },
              { title: t("role"), cell: ({ role }) => t(roleText(role)) },
              { title: t("created"), cell: ({ created_at }) => <Time at={created_at} /> },
              {
                title: t("actions"),
                cell: (user) => (
                  <span class="row">
                    <button type="button" onClick={() => setEdited(user)}>
                      {t("editUser")}
                    </button>
                    <button type="button" onClick={() => setDeleted(user)}>
                      {t("delete")}
                    </button>
                  </span>
                ),
              },
            ]}
          />
        )}
      </ListView>
      <Invitations list={invitations} />
      {isInviting && (
        <Dialog title={t("invite")} onClose={() => setInviting(false)}>
          <Form
            submit={t("invite")}
            onSubmit={async ({ email = "", role }) => {
              setInvited(await vodbox.createInvitation({ body: { email, role: role as Role } }));
              setInviting(false);
              invitations.reload();
            }}
          >
            <Field label={t("email")} name="email" type="email" required autocomplete="off" />
            <RoleField value="editor" />
          </Form>
        </Dialog>
      )}
      {edited && (
        <Dialog title={edited.email} onClose={() => setEdited(null)}>
          <Form
            submit={t("save")}
            onSubmit={async ({ name = "", role }) => {
              await vodbox.updateTenantUser({ id: edited.id, body: { name: name || null, role: role as Role } });
              setEdited(null);
              list.reload();
              toast(t("saved"));
            }}
          >
            <Field label={t("personName")} name="name" value={edited.name ?? ""} autocomplete="off" />
            <RoleField value={edited.role} />
          </Form>
        </Dialog>
      )}
      {deleted && (
        <ConfirmDialog
          text={t("deleteUser", { email: deleted.email })}
          onConfirm={async () => {
            setDeleted(null);
            await attempt(() => vodbox.deleteTenantUser({ id: deleted.id }));
            list.reload();
          }}
          onClose={() => setDeleted(null)}
        />
      )}
    </>
  );
}

function RoleField({ value }: { value: Role }) {
  const t = useTexts(texts);
  return (
    <>
      <Select label={t("role")} name="role" value={value} options={ROLES.map(([role, text]) => [role, t(text)])} />
      <p class="fine">{t("roleHint")}</p>
    </>
  );
}
