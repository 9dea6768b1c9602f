import { vodbox } from "#web/console/api.ts";
import { Dialog } from "#web/console/components/dialog.tsx";
import { Field, Form } from "#web/console/components/form.tsx";
import { localTime } from "#web/console/local-time.ts";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Share } from "#web/console/types.ts";
import { texts } from "./texts.ts";

type Props = {
  assetId: number;
  /** Null: a new one. */
  share: Share | null;
  onDone(): void;
  onClose(): void;
};

/** Creates or changes a share. */
export function ShareDialog({ assetId, share, onDone, onClose }: Props) {
  const t = useTexts(texts);
  const expiry = localTime(share?.expires_at ?? null);
  const save = async ({ name, password, noPassword, expires, plays, download }: Record<string, string>) => {
    const body = {
      name: name || null,
      // An empty field leaves the password of the share as it is.
      ...(password && { password }),
      ...(noPassword !== undefined && { password: null }),
      // The field has no seconds: what was not touched stays as it is.
      ...(expires !== expiry && { expires_at: expires ? new Date(expires).toISOString() : null }),
      max_plays: plays ? Number(plays) : null,
      allow_download: download !== undefined,
    };
    await (share
      ? vodbox.updateShare({ id: assetId, share_id: share.id, body })
      : vodbox.createShare({ id: assetId, body }));
    onDone();
  };
  return (
    <Dialog title={share ? t("changeShare") : t("shareVideo")} onClose={onClose}>
      <Form submit={share ? t("save") : t("create")} onSubmit={save}>
        <Field label={t("name")} name="name" value={share?.name ?? ""} hint={t("shareNameHint")} autocomplete="off" />
        <Field
          label={t("password")}
          name="password"
          type="password"
          hint={share?.has_password ? t("keepPasswordHint") : t("sharePasswordHint")}
          autocomplete="new-password"
        />
        {share?.has_password && (
          <label class="check">
            <input type="checkbox" name="noPassword" /> {t("removePassword")}
          </label>
        )}
        <Field label={t("expiresOn")} name="expires" type="datetime-local" value={expiry} />
        <Field
          label={t("maxPlays")}
          name="plays"
          type="number"
          min="1"
          value={share?.max_plays == null ? "" : String(share.max_plays)}
          hint={t("maxPlaysHint")}
        />
        <label class="check">
          <input type="checkbox" name="download" defaultChecked={share?.allow_download ?? false} /> {t("allowDownload")}
        </label>
      </Form>
    </Dialog>
  );
}
