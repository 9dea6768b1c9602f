import { useId, useRef } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { useToast } from "#web/console/components/toast.tsx";
import { useAttempt } from "#web/console/hooks/use-attempt.ts";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Tenant } from "#web/console/types.ts";
import { texts } from "./texts.ts";

/** The logo that the player shows. */
export function Logo({ tenant, onChange }: { tenant: Tenant; onChange(tenant: Tenant): void }) {
  const t = useTexts(texts);
  const toast = useToast();
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const { failure, attempt } = useAttempt();
  const change = (work: () => Promise<Tenant>) =>
    attempt(async () => {
      onChange(await work());
      toast(t("saved"));
    });
  const send = () => {
    const file = input.current?.files?.[0];
    if (file) void change(() => vodbox.setTenantLogo({ id: tenant.id, body: file }));
  };
  const { logo_url } = tenant.player;
  return (
    <div class="field">
      <label for={id}>{t("logo")}</label>
      {/* The path: the page may have been opened at another host name than the base URL's. */}
      {logo_url && <img class="logo" src={new URL(logo_url).pathname} alt={t("currentLogo")} />}
      <span class="row">
        <input id={id} ref={input} type="file" accept="image/png" aria-describedby={`${id}-hint`} />
        <button type="button" onClick={send}>
          {t("upload")}
        </button>
        {logo_url && (
          <button type="button" onClick={() => change(() => vodbox.deleteTenantLogo({ id: tenant.id }))}>
            {t("removeLogo")}
          </button>
        )}
      </span>
      <small id={`${id}-hint`} class="fine">
        {t("logoHint")}
      </small>
      <ErrorNotice error={failure} />
    </div>
  );
}
