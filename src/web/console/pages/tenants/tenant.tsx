import { useState } from "preact/hooks";
import { useLocation, useRoute } from "preact-iso/router";
import { TENANT_PLAN_NAME } from "#build/client/enums.ts";
import { vodbox } from "#web/console/api.ts";
import { pagePath } from "#web/console/base.ts";
import { Badge } from "#web/console/components/badge.tsx";
import { ConfirmDialog, Dialog } from "#web/console/components/dialog.tsx";
import { Field, Form, Select } from "#web/console/components/form.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { PageHead } from "#web/console/components/page-head.tsx";
import { Time } from "#web/console/components/time.tsx";
import { useToast } from "#web/console/components/toast.tsx";
import { bytes, count } from "#web/console/format.ts";
import { useAttempt } from "#web/console/hooks/use-attempt.ts";
import { useResource } from "#web/console/hooks/use-resource.ts";
import { useLanguage, useTexts } from "#web/console/texts/texts.tsx";
import type { Tenant } from "#web/console/types.ts";
import { texts } from "./texts.ts";
import { Users } from "./users.tsx";

/** One tenant: its settings, its users, and its end. */
export default function TenantPage() {
  const t = useTexts(texts);
  const { params } = useRoute();
  const ref = params.ref ?? "";
  const { value, error, reload, set } = useResource(() => vodbox.getTenant({ ref }), [ref]);
  if (error) return <ErrorNotice error={error} onRetry={reload} />;
  if (!value) return <p>{t("loading")}</p>;
  return <Details tenant={value} onChange={set} />;
}

function Details({ tenant, onChange }: { tenant: Tenant; onChange(tenant: Tenant): void }) {
  const t = useTexts(texts);
  const { language } = useLanguage();
  const { route } = useLocation();
  const toast = useToast();
  const { failure, attempt } = useAttempt();
  const [question, setQuestion] = useState<"suspend" | "delete" | null>(null);
  const ref = String(tenant.id);
  const setStatus = async (status: "active" | "suspended") => {
    setQuestion(null);
    await attempt(async () => onChange(await vodbox.updateTenant({ ref, body: { status } })));
  };
  const isDeleting = tenant.status === "deleting";
  return (
    <>
      <PageHead title={tenant.name} back="tenants">
        {!isDeleting && (
          <>
            {tenant.status === "suspended" ? (
              <button type="button" onClick={() => setStatus("active")}>
                {t("resume")}
              </button>
            ) : (
              <button type="button" onClick={() => setQuestion("suspend")}>
                {t("suspend")}
              </button>
            )}
            <button type="button" class="danger" onClick={() => setQuestion("delete")}>
              {t("delete")}
            </button>
          </>
        )}
      </PageHead>
      <ErrorNotice error={failure} />
      <div class="columns">
        <Settings tenant={tenant} onChange={onChange} />
        <dl class="facts">
          <dt>{t("status")}</dt>
          <dd>
            <Badge state={tenant.status} text={t(tenant.status)} />
          </dd>
          <dt>{t("slug")}</dt>
          <dd>
            <code>{tenant.slug}</code>
          </dd>
          <dt>{t("storage")}</dt>
          <dd>{bytes(tenant.storage_bytes, language)}</dd>
          <dt>{t("delivered")}</dt>
          <dd>{bytes(tenant.egress_bytes, language)}</dd>
          <dt>{t("transcoded")}</dt>
          <dd>
            {count(tenant.transcoding_minutes, language)} {t("minutes")}
          </dd>
          <dt>{t("receivedLive")}</dt>
          <dd>
            {count(tenant.live_minutes, language)} {t("minutes")}
          </dd>
          <dt>{t("created")}</dt>
          <dd>
            <Time at={tenant.created_at} />
          </dd>
        </dl>
      </div>
      {!isDeleting && <Users tenantId={tenant.id} />}
      {question === "suspend" && (
        <ConfirmDialog
          text={t("suspendQuestion")}
          onConfirm={() => setStatus("suspended")}
          onClose={() => setQuestion(null)}
        />
      )}
      {question === "delete" && (
        <Dialog title={t("deleteTenant", { name: tenant.name })} onClose={() => setQuestion(null)}>
          <p>{t("deleteQuestion")}</p>
          <Form
            submit={t("confirm")}
            onSubmit={async ({ confirm = "" }) => {
              await vodbox.deleteTenant({ ref, confirm });
              toast(t("deletionBegun"));
              route(pagePath("tenants"));
            }}
          >
            <Field label={t("typeSlug", { slug: tenant.slug })} name="confirm" required autocomplete="off" />
          </Form>
        </Dialog>
      )}
    </>
  );
}

/** Empty is null: never. */
const days = (text = "") => (text.trim() === "" ? null : Number(text));

function Settings({ tenant, onChange }: { tenant: Tenant; onChange(tenant: Tenant): void }) {
  const t = useTexts(texts);
  const toast = useToast();
  const save = async (values: Record<string, string>) => {
    const { name = "", plan_name, default_playback_policy, allowed_origins = "" } = values;
    const body = {
      name,
      plan_name: plan_name as Tenant["plan_name"],
      default_playback_policy: default_playback_policy as Tenant["default_playback_policy"],
      allowed_origins: allowed_origins.split(/[\s,]+/).filter(Boolean),
      delete_sources_after_days: days(values.delete_sources_after_days),
      delete_analytics_after_days: days(values.delete_analytics_after_days),
    };
    onChange(await vodbox.updateTenant({ ref: String(tenant.id), body }));
    toast(t("saved"));
  };
  return (
    <Form submit={t("save")} onSubmit={save} asksBeforeLeaving>
      <Field label={t("name")} name="name" value={tenant.name} required />
      <Select
        label={t("plan")}
        name="plan_name"
        value={tenant.plan_name}
        options={TENANT_PLAN_NAME.map((plan) => [plan, plan] as [string, string])}
      />
      <Select
        label={t("defaultPolicy")}
        name="default_playback_policy"
        value={tenant.default_playback_policy}
        options={[
          ["public", t("public")],
          ["signed", t("signed")],
        ]}
      />
      <Field
        label={t("origins")}
        name="allowed_origins"
        value={tenant.allowed_origins.join(" ")}
        hint={t("originsHint")}
      />
      <Field
        label={t("sourceDays")}
        name="delete_sources_after_days"
        value={String(tenant.delete_sources_after_days ?? "")}
        hint={t("daysHint")}
      />
      <Field
        label={t("analyticsDays")}
        name="delete_analytics_after_days"
        value={String(tenant.delete_analytics_after_days ?? "")}
        hint={t("daysHint")}
      />
    </Form>
  );
}
