import { vodbox } from "#web/console/api.ts";
import { Checkbox, Field, Form, Select } from "#web/console/components/form.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { PageHead } from "#web/console/components/page-head.tsx";
import { useToast } from "#web/console/components/toast.tsx";
import { useResource } from "#web/console/hooks/use-resource.ts";
import { useAccount } from "#web/console/page-title.tsx";
import { useSession } from "#web/console/session.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Tenant } from "#web/console/types.ts";
import { Logo } from "./logo.tsx";
import { texts } from "./texts.ts";

/** What the admins of a tenant decide for it. */
export default function Settings() {
  const t = useTexts(texts);
  const { session } = useSession();
  const id = session.tenant_id;
  const tenant = useResource(async () => (id === null ? null : vodbox.getTenantSettings({ id })), [id]);
  if (id === null)
    return (
      <>
        <PageHead title={t("settings")} />
        <p>{t("noTenant")}</p>
      </>
    );
  return (
    <>
      <PageHead title={t("settings")} />
      <ErrorNotice error={tenant.error} onRetry={tenant.reload} />
      {tenant.value && (
        <>
          <Fields tenant={tenant.value} onChange={tenant.set} />
          <Logo tenant={tenant.value} onChange={tenant.set} />
        </>
      )}
    </>
  );
}

type Props = { tenant: Tenant; onChange(tenant: Tenant): void };

/** Empty is null: never. */
const days = (text = "") => (text.trim() === "" ? null : Number(text));
const EARLY = { default: null, on: true, off: false } as const;

function Fields({ tenant, onChange }: Props) {
  const t = useTexts(texts);
  const { setTenantName } = useAccount();
  const toast = useToast();
  const profiles = useResource(async () => await vodbox.listEncodingProfiles({ limit: 500 }), []);
  const save = async (values: Record<string, string>) => {
    const { name = "", default_playback_policy, allowed_origins = "", early_playback = "default" } = values;
    const body = {
      name,
      default_playback_policy: default_playback_policy as Tenant["default_playback_policy"],
      allowed_origins: allowed_origins.split(/[\s,]+/).filter(Boolean),
      early_playback: EARLY[early_playback as keyof typeof EARLY],
      delete_sources_after_days: days(values.delete_sources_after_days),
      delete_analytics_after_days: days(values.delete_analytics_after_days),
      // Not before the profiles are loaded, which the field shows.
      ...(profiles.value && { default_encoding_profile: values.default_encoding_profile || null }),
      language: values.language?.trim() || null,
      player: {
        accent_color: values.accent_color?.trim() || null,
        show_title: values.show_title === "on",
        allow_download: values.allow_download === "on",
      },
    };
    const changed = await vodbox.updateTenantSettings({ id: tenant.id, body });
    onChange(changed);
    setTenantName(changed.name);
    toast(t("saved"));
  };
  const { accent_color, show_title, allow_download } = tenant.player;
  const early = (["default", "on", "off"] as const).find((one) => EARLY[one] === tenant.early_playback) ?? "default";
  return (
    <Form submit={t("save")} onSubmit={save} asksBeforeLeaving>
      <Field label={t("name")} name="name" value={tenant.name} required autocomplete="organization" />
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
      <Select
        label={t("earlyPlayback")}
        name="early_playback"
        value={early}
        options={[
          ["default", t("serverDefault")],
          ["on", t("on")],
          ["off", t("off")],
        ]}
      />
      {profiles.value && (
        <Select
          label={t("profile")}
          name="default_encoding_profile"
          value={tenant.default_encoding_profile ?? ""}
          options={[
            ["", t("noProfile")],
            ...profiles.value.map(({ name }): [string, string] => [name, name]).filter(([name]) => name !== "default"),
          ]}
        />
      )}
      <Field label={t("language")} name="language" value={tenant.language ?? ""} hint={t("languageHint")} />
      <Field
        label={t("sourceDays")}
        name="delete_sources_after_days"
        type="number"
        min="1"
        value={String(tenant.delete_sources_after_days ?? "")}
        hint={t("daysHint")}
      />
      <Field
        label={t("analyticsDays")}
        name="delete_analytics_after_days"
        type="number"
        min="1"
        value={String(tenant.delete_analytics_after_days ?? "")}
        hint={t("daysHint")}
      />
      <h2>{t("player")}</h2>
      <Field label={t("accentColor")} name="accent_color" value={accent_color ?? ""} hint={t("accentHint")} />
      <Checkbox label={t("showTitle")} name="show_title" isChecked={show_title} />
      <Checkbox label={t("allowDownload")} name="allow_download" isChecked={allow_download} hint={t("downloadHint")} />
    </Form>
  );
}
