import { useEffect } from "preact/hooks";
import { vodbox } from "../api.ts";
import { useResource } from "../hooks/use-resource.ts";
import { useTexts } from "../texts/texts.tsx";
import { Select, useFormWait } from "./form.tsx";
import { ErrorNotice } from "./notice.tsx";

/**
 * The tenant of what the operator creates, as the field `tenant_id`. `onChange` is also called with the first one when the
 * tenants are loaded, because it is the one that is shown.
 */
export function TenantSelect({ onChange }: { onChange?(id: string): void }) {
  const t = useTexts();
  const { value, error, reload } = useResource(async () => await vodbox.listTenants({ limit: 500 }), []);
  useFormWait(!value?.length);
  useEffect(() => {
    if (value?.[0]) onChange?.(String(value[0].id));
  }, [value]);
  if (error) return <ErrorNotice error={error} onRetry={reload} />;
  if (value?.length === 0) return <p class="empty">{t("noTenants")}</p>;
  const options = (value ?? []).map(({ id, name }) => [String(id), name] as [string, string]);
  return <Select label={t("tenant")} name="tenant_id" options={options} {...(onChange && { onChange })} />;
}
