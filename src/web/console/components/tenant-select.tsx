import { useEffect } from "preact/hooks";
import { vodbox } from "../api.ts";
import { useResource } from "../hooks/use-resource.ts";
import { useTexts } from "../texts/texts.tsx";
import { Select, useFormWait } from "./form.tsx";
import { ErrorNotice } from "./notice.tsx";

/** The tenant of what the operator creates, as the field `tenant_id`; `onChange` also gets the first one, once loaded. */
export function TenantSelect({ onChange }: { onChange?(id: string): void }) {
  const t = useTexts();
  const { value, error, reload } = useResource(async () => await vodbox.listTenants({ limit: 500 }), []);
  useFormWait(value === null);
  useEffect(() => {
    if (value?.[0]) onChange?.(String(value[0].id));
  }, [value]);
  if (error) return <ErrorNotice error={error} onRetry={reload} />;
  const options = (value ?? []).map(({ id, name }) => [String(id), name] as [string, string]);
  return <Select label={t("tenant")} name="tenant_id" options={options} {...(onChange && { onChange })} />;
}
