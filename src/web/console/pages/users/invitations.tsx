import { useState } from "preact/hooks";
import { vodbox } from "../../api.ts";
import { ConfirmDialog } from "../../components/dialog.tsx";
import { ListView } from "../../components/list-view.tsx";
import { ErrorNotice } from "../../components/notice.tsx";
import { Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { useAttempt } from "../../hooks/use-attempt.ts";
import type { ListState } from "../../hooks/use-list.ts";
import { useTexts } from "../../texts/texts.tsx";
import type { Invitation } from "../../types.ts";
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
