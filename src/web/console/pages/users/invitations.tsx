import { useState } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { ConfirmDialog } from "#web/console/components/dialog.tsx";
import { ListView } from "#web/console/components/list-view.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { Table } from "#web/console/components/table.tsx";
import { Time } from "#web/console/components/time.tsx";
import { useAttempt } from "#web/console/hooks/use-attempt.ts";
import type { ListState } from "#web/console/hooks/use-list.ts";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Invitation } from "#web/console/types.ts";
import { roleText } from "./roles.ts";
import { texts } from "./texts.ts";

/** Invitations that can still be accepted. */
export function Invitations({ list }: { list: ListState<Invitation> }) {
  const t = useTexts(texts);
  const { failure, attempt } = useAttempt();
  const [revoked, setRevoked] = useState<Invitation | null>(null);
  return (
    <section aria-labelledby="invitations">
      <h2 id="invitations">{t("invitations")}</h2>
      <ErrorNotice error={failure} />
      <ListView list={list} empty={t("noInvitations")}>
        {(items) => (
          <Table
            items={items}
            columns={[
              { title: t("email"), cell: ({ email }) => email },
              { title: t("role"), cell: ({ role }) => t(roleText(role)) },
              { title: t("expires"), cell: ({ expires_at }) => <Time at={expires_at} /> },
              {
                title: t("actions"),
                cell: (invitation) => (
                  <button type="button" onClick={() => setRevoked(invitation)}>
                    {t("revoke")}
                  </button>
                ),
              },
            ]}
          />
        )}
      </ListView>
      {revoked && (
        <ConfirmDialog
          text={t("revokeInvitation", { email: revoked.email })}
          onConfirm={async () => {
            setRevoked(null);
            await attempt(() => vodbox.revokeInvitation({ id: revoked.id }));
            list.reload();
          }}
          onClose={() => setRevoked(null)}
        />
      )}
    </section>
  );
}
