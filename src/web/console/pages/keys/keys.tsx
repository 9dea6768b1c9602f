import { KeyRound } from "lucide";
import { useState } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { Badge } from "#web/console/components/badge.tsx";
import { ConfirmDialog, Dialog } from "#web/console/components/dialog.tsx";
import { Field, Form, Select } from "#web/console/components/form.tsx";
import { ListView } from "#web/console/components/list-view.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { PageHead } from "#web/console/components/page-head.tsx";
import { ShownOnce } from "#web/console/components/shown-once.tsx";
import { Table } from "#web/console/components/table.tsx";
import { TenantSelect } from "#web/console/components/tenant-select.tsx";
import { Time } from "#web/console/components/time.tsx";
import { useList } from "#web/console/hooks/use-list.ts";
import { useSession } from "#web/console/session.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { ApiKey } from "#web/console/types.ts";
import { RotateDialog } from "./rotate-dialog.tsx";
import { scopes } from "./scopes.ts";
import { SigningKeys } from "./signing-keys.tsx";
import { texts } from "./texts.ts";

const DAY_MS = 86_400_000;
const DAYS = [30, 90, 365] as const;

/** Keys of the tenant, or of all tenants for the operator. */
export default function Keys() {
  const t = useTexts(texts);
  const { may, session } = useSession();
  const [isNew, setNew] = useState(false);
  const [token, setToken] = useState<string | null>(null);
  const [revoked, setRevoked] = useState<ApiKey | null>(null);
  const [rotated, setRotated] = useState<ApiKey | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const list = useList(() => vodbox.listApiKeys(), []);
  const { reload } = list;
  const own = scopes.filter(([scope]) => may(scope));
  const create = async ({ name = "", tenant_id, days = "", ...chosen }: Record<string, string>) => {
    const body = {
      name,
      expires_at: days === "" ? null : new Date(Date.now() + Number(days) * DAY_MS).toISOString(),
      tenant_id: session.tenant_id ?? Number(tenant_id),
      scopes: own.map(([scope]) => scope).filter((scope) => scope in chosen),
    };
    setToken((await vodbox.createApiKey({ body })).token ?? null);
    setNew(false);
    reload();
  };
  const revoke = async ({ id }: ApiKey) => {
    setRevoked(null);
    await vodbox.revokeApiKey({ id }).catch(setFailure);
    reload();
  };
  return (
    <>
      <PageHead title={t("apiKeys")}>
        {may("api_keys:write") && (
          <button type="button" class="primary" onClick={() => setNew(true)}>
            {t("newApiKey")}
          </button>
        )}
      </PageHead>
      {token !== null && <ShownOnce text={t("keyShownOnce")} secret={token} />}
      <ErrorNotice error={failure} />
      <ListView
        list={list}
        empty={t("noKeys")}
        icon={KeyRound}
        action={
          may("api_keys:write") && (
            <button type="button" class="primary" onClick={() => setNew(true)}>
              {t("firstKey")}
            </button>
          )
        }
      >
        {(items) => (
          <Table
            items={items}
            columns={[
              { title: t("name"), cell: ({ name, last_four }) => `${name} …${last_four}` },
              { title: t("scopes"), cell: ({ scopes }) => scopes.join(", ") },
              { title: t("status"), cell: (key) => <KeyState apiKey={key} /> },
              {
                title: t("lastUsed"),
                cell: ({ last_used_at, last_used_address }) =>
                  last_used_at ? (
                    <>
                      <Time at={last_used_at} />
                      {last_used_address && <div class="fine">{t("usedFrom", { address: last_used_address })}</div>}
                    </>
                  ) : (
                    t("never")
                  ),
              },
              {
                title: t("expires"),
                cell: ({ expires_at }) => (expires_at ? <Time at={expires_at} /> : t("never")),
              },
              { title: t("created"), cell: ({ created_at }) => <Time at={created_at} /> },
              {
                title: t("actions"),
                cell: (key) =>
                  may("api_keys:write") &&
                  key.revoked_at === null && (
                    <div class="row">
                      {!isExpired(key) && (
                        <button type="button" onClick={() => setRotated(key)}>
                          {t("rotate")}
                        </button>
                      )}
                      <button type="button" onClick={() => setRevoked(key)}>
                        {t("delete")}
                      </button>
                    </div>
                  ),
              },
            ]}
          />
        )}
      </ListView>
      {may("api_keys:read") && <SigningKeys />}
      {isNew && (
        <Dialog title={t("newApiKey")} onClose={() => setNew(false)}>
          <Form submit={t("create")} onSubmit={create}>
            <Field label={t("name")} name="name" required />
            {session.tenant_id === null && <TenantSelect />}
            <Select
              label={t("expires")}
              name="days"
              options={[["", t("never")], ...DAYS.map((days): [string, string] => [String(days), t(`days_${days}`)])]}
            />
            <fieldset>
              <legend>{t("scopes")}</legend>
              {own.map(([scope, explanation]) => (
                <label key={scope} class="check">
                  <input type="checkbox" name={scope} defaultChecked={scope === "assets:read"} /> <code>{scope}</code>{" "}
                  <span class="fine">{t(explanation)}</span>
                </label>
              ))}
            </fieldset>
          </Form>
        </Dialog>
      )}
      {rotated && (
        <RotateDialog
          apiKey={rotated}
          onRotated={(next) => {
            setToken(next);
            setRotated(null);
            reload();
          }}
          onClose={() => setRotated(null)}
        />
      )}
      {revoked && (
        <ConfirmDialog text={t("deleteKey")} onConfirm={() => revoke(revoked)} onClose={() => setRevoked(null)} />
      )}
    </>
  );
}

const isExpired = ({ expires_at }: ApiKey) => expires_at !== null && Date.parse(expires_at) <= Date.now();

function KeyState({ apiKey }: { apiKey: ApiKey }) {
  const t = useTexts(texts);
  if (apiKey.revoked_at !== null) return <Badge state="errored" text={t("revoked")} />;
  if (isExpired(apiKey)) return <Badge state="errored" text={t("expired")} />;
  return <Badge state="ready" text={t("active")} />;
}
