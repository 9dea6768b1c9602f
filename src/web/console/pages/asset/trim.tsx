import { useState } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { ConfirmDialog } from "#web/console/components/dialog.tsx";
import { Form, Select } from "#web/console/components/form.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { useToast } from "#web/console/components/toast.tsx";
import { useAttempt } from "#web/console/hooks/use-attempt.ts";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Asset } from "#web/console/types.ts";
import { texts } from "./texts.ts";

type Mode = "instant" | "exact";
type Props = {
  asset: Asset;
  /** As typed or marked, in seconds. */
  range: { start: string; end: string };
  onChange(asset: Asset): void;
};

/** Reduces the video itself to the marked range, after a question. */
export function Trim({ asset, range, onChange }: Props) {
  const t = useTexts(texts);
  const toast = useToast();
  const { failure, attempt } = useAttempt();
  const [asked, setAsked] = useState<Mode | null>(null);
  const ask = async ({ mode }: Record<string, string>) => setAsked(mode === "exact" ? "exact" : "instant");
  const trim = (mode: Mode) => () => {
    setAsked(null);
    return attempt(async () => {
      const body = { start_seconds: Number(range.start), end_seconds: Number(range.end), mode };
      const result = await vodbox.trimAsset({ id: asset.id, body });
      const isDone = "external_id" in result;
      if (isDone) onChange(result);
      toast(t(isDone ? "trimmed" : "trimQueued"));
    });
  };
  return (
    <>
      <h2>{t("trimVideo")}</h2>
      <p class="fine">{t("trimHint")}</p>
      <Form submit={t("trimVideo")} onSubmit={ask}>
        <Select
          label={t("trimMode")}
          name="mode"
          options={[
            ["instant", t("instantClip")],
            ["exact", t("exactClip")],
          ]}
        />
      </Form>
      <ErrorNotice error={failure} />
      {asked && <ConfirmDialog text={t("trimQuestion")} onConfirm={trim(asked)} onClose={() => setAsked(null)} />}
    </>
  );
}
