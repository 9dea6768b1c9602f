import { useState } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { Badge } from "#web/console/components/badge.tsx";
import { CopyButton } from "#web/console/components/copy-button.tsx";
import { ConfirmDialog, Dialog } from "#web/console/components/dialog.tsx";
import { Area, Field, Form, Select } from "#web/console/components/form.tsx";
import { ListView } from "#web/console/components/list-view.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { ShownOnce } from "#web/console/components/shown-once.tsx";
import { Table } from "#web/console/components/table.tsx";
import { TenantSelect } from "#web/console/components/tenant-select.tsx";
import { Time } from "#web/console/components/time.tsx";
import { useAttempt } from "#web/console/hooks/use-attempt.ts";
import { useList } from "#web/console/hooks/use-list.ts";
import { useSession } from "#web/console/session.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { SigningKey } from "#web/console/types.ts";
import { texts } from "./texts.ts";

/** Keys with which a tenant's own backend signs playback tokens. */
export function SigningKeys() {
  const t = useTexts(texts);
  const { may, session } = useSession();
  const { failure, attempt } = useAttempt();
  const [isNew, setNew] = useState(false);
  const [privateKey, setPrivateKey] = useState<string | null>(null);
  const [revoked, setRevoked] = useState<SigningKey | null>(null);
  const list = useList(() => vodbox.listSigningKeys(), []);
  const create = async ({ name = "", algorithm, public_key = "", tenant_id }: Record<string, string>) => {
    const tenant = session.tenant_id ?? Number(tenant_id);
    const key = public_key.trim() === "" ? { algorithm: algorithm as "RS256" | "EdDSA" } : { public_key };
    const made = await vodbox.createSigningKey({ body: { name, tenant_id: tenant, ...key } });
    setPrivateKey(made.private_key ?? null);
    setNew(false);
    list.reload();
  };
  return (
    <section aria-labelledby="signing-keys">
      <div class="page-head">
        <h2 id="signing-keys">{t("signingKeys")}</h2>
        {may("api_keys:write") && (
          <button type="button" onClick={() => setNew(true)}>
            {t("newSigningKey")}
          </button>
        )}
      </div>
      <p class="fine">{t("signingKeysHint")}</p>
      {privateKey !== null && <ShownOnce text={t("privateKeyShownOnce")} secret={privateKey} />}
      <ErrorNotice error={failure} />
      <ListView list={list} empty={t("noSigningKeys")}>
        {(items) => (
          <Table
            items={items}
            columns={[
              { title: t("name"), cell: ({ name }) => name },
              { title: t("keyId"), cell: ({ key_id }) => <code>{key_id}</code> },
              { title: t("algorithm"), cell: ({ algorithm }) => algorithm },
              {
                title: t("status"),
                cell: ({ revoked_at }) => (
                  <Badge
                    state={revoked_at === null ? "ready" : "errored"}
                    text={t(revoked_at === null ? "active" : "revoked")}
                  />
                ),
              },
              { title: t("created"), cell: ({ created_at }) => <Time at={created_at} /> },
              {
                title: t("actions"),
                cell: (key) => (
                  <span class="row">
                    <CopyButton text={key.public_key} label={t("copyPublicKey")} />
                    {may("api_keys:write") && key.revoked_at === null && (
                      <button type="button" onClick={() => setRevoked(key)}>
                        {t("delete")}
                      </button>
                    )}
                  </span>
                ),
              },
            ]}
          />
        )}
      </ListView>
      {isNew && (
        <Dialog title={t("newSigningKey")} onClose={() => setNew(false)}>
          <Form submit={t("create")} onSubmit={create}>
            <Field label={t("name")} name="name" required />
            {session.tenant_id === null && <TenantSelect />}
            <Select
              label={t("algorithm")}
              name="algorithm"
              options={[
                ["EdDSA", "EdDSA (Ed25519)"],
                ["RS256", "RS256 (RSA)"],
              ]}
            />
            <Area label={t("ownPublicKey")} name="public_key" hint={t("ownPublicKeyHint")} />
          </Form>
        </Dialog>
      )}
      {revoked && (
        <ConfirmDialog
          text={t("deleteSigningKey")}
          onConfirm={async () => {
            setRevoked(null);
            await attempt(() => vodbox.revokeSigningKey({ id: revoked.id }));
            list.reload();
          }}
          onClose={() => setRevoked(null)}
        />
      )}
    </section>
  );
}
