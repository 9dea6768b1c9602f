import { vodbox } from "#web/console/api.ts";
import { Dialog } from "#web/console/components/dialog.tsx";
import { Field, Form } from "#web/console/components/form.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import { generateTexts } from "./generate-texts.ts";

type GenerateProps = { assetId: number; mayTranslate: boolean; onDone(): void; onClose(): void };

/** Requests captions of the speech, in a given language or a detected one. */
export function GenerateDialog({ assetId, mayTranslate, onDone, onClose }: GenerateProps) {
  const t = useTexts(generateTexts);
  const send = async ({ language = "", translate_to = "" }: Record<string, string>) => {
    const targets = translate_to.split(/[\s,;]+/).filter((tag) => tag !== "");
    const body = { language: language.trim() || "auto", translate_to: targets };
    await vodbox.generateSubtitle({ video_asset_id: assetId, body });
    onDone();
  };
  return (
    <Dialog title={t("generate")} onClose={onClose}>
      <Form submit={t("generate")} onSubmit={send}>
        <p class="fine">{t("generateHint")}</p>
        <Field label={t("spokenLanguage")} name="language" hint={t("spokenHint")} />
        {mayTranslate && <Field label={t("alsoTranslate")} name="translate_to" hint={t("alsoTranslateHint")} />}
      </Form>
    </Dialog>
  );
}
