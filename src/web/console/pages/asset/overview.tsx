import { vodbox } from "../../api.ts";
import { Area, Field, Form, Select } from "../../components/form.tsx";
import { useToast } from "../../components/toast.tsx";
import { useSession } from "../../session.tsx";
import { useTexts } from "../../texts/texts.tsx";
import type { SectionProps } from "./section.ts";
import { Sharing } from "./sharing.tsx";
import { texts } from "./texts.ts";

/** As the browser's field for a local time has it, to the minute. */
function localTime(iso: string | null): string {
  if (iso === null) return "";
  const at = new Date(iso);
  return new Date(at.getTime() - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

export function Overview({ asset, playback, onChange }: SectionProps) {
  const t = useTexts(texts);
  const { may } = useSession();
  const toast = useToast();
  const expiry = localTime(asset.expires_at);
  const save = async ({ expires, description, ...others }: Record<string, string>) => {
    const body = {
      ...others,
      description: description || null,
      // The field has no seconds: what was not touched stays as it is.
      ...(expires !== expiry && { expires_at: expires ? new Date(expires).toISOString() : null }),
    };
    onChange(await vodbox.updateAsset({ id: asset.id, body: { video_asset: body } }));
    toast(t("saved"));
  };
  return (
    <div class="halves">
      {may("assets:write") && (
        <Form submit={t("save")} onSubmit={save} asksBeforeLeaving>
          <Field label={t("title")} name="title" value={asset.title} required />
          <Area label={t("description")} name="description" value={asset.description ?? ""} />
          <Select
            label={t("playbackPolicy")}
            name="playback_policy"
            value={asset.playback_policy}
            options={[
              ["public", t("public")],
              ["signed", t("signed")],
            ]}
          />
          <Field label={t("expiresAt")} name="expires" type="datetime-local" value={expiry} hint={t("expiresHint")} />
        </Form>
      )}
      {playback && <Sharing title={asset.title} playback={playback} />}
    </div>
  );
}
