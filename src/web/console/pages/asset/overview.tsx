import { vodbox } from "#web/console/api.ts";
import { Area, Field, Form, Select } from "#web/console/components/form.tsx";
import { useToast } from "#web/console/components/toast.tsx";
import type { ListState } from "#web/console/hooks/use-list.ts";
import { localTime } from "#web/console/local-time.ts";
import { useSession } from "#web/console/session.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Share } from "#web/console/types.ts";
import type { SectionProps } from "./section.ts";
import { Shares } from "./shares.tsx";
import { Sharing } from "./sharing.tsx";
import { texts } from "./texts.ts";

type Props = SectionProps & { shares: ListState<Share> | null };

export function Overview({ asset, playback, onChange, shares }: Props) {
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
    <>
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
        {playback && <Sharing asset={asset} playback={playback} shares={shares} />}
      </div>
      {shares && <Shares asset={asset} list={shares} />}
    </>
  );
}
