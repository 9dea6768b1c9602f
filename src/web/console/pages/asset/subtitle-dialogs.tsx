import { useId, useRef, useState } from "preact/hooks";
import { SUBTITLE_ROLE } from "#build/client/enums.ts";
import { vodbox } from "#web/console/api.ts";
import { Dialog } from "#web/console/components/dialog.tsx";
import { Field, Form, Select } from "#web/console/components/form.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Subtitle } from "#web/console/types.ts";
import { texts } from "./texts.ts";

export const SUBTITLE_ROLE_TEXTS = {
  subtitle: "roleSubtitle",
  caption: "roleCaption",
  description: "roleTextDescription",
  forced: "roleForced",
} as const;

type UploadProps = { assetId: number; onDone(subtitle: Subtitle): void; onClose(): void };

export function UploadDialog({ assetId, onDone, onClose }: UploadProps) {
  const t = useTexts(texts);
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const [stated, setStated] = useState("");
  const send = async ({ language = "", label = "", role = "subtitle", is_default }: Record<string, string>) => {
    const file = input.current?.files?.[0];
    if (!file) return;
    const fields = { language, label: label || language, role: role as Subtitle["role"] };
    const body = { file, ...fields, is_default: is_default !== undefined };
    onDone(await vodbox.createSubtitle({ video_asset_id: assetId, body }));
  };
  return (
    <Dialog title={t("uploadSubtitle")} onClose={onClose}>
      <Form submit={t("upload")} onSubmit={send}>
        <div class="field">
          <label for={id}>{t("subtitleFile")}</label>
          <input
            id={id}
            ref={input}
            type="file"
            accept=".srt,.vtt,.ttml,.dfxp,.xml,text/vtt,application/ttml+xml"
            required
            onChange={async ({ currentTarget: { files } }) => setStated(await statedLanguage(files?.[0]))}
          />
        </div>
        <Field
          key={stated}
          label={t("subtitleLanguage")}
          name="language"
          value={stated}
          hint={t("languageHint")}
          required
        />
        <Field label={t("label")} name="label" hint={t("labelHint")} />
        <Select
          label={t("subtitleRole")}
          name="role"
          options={SUBTITLE_ROLE.map((role) => [role, t(SUBTITLE_ROLE_TEXTS[role])])}
        />
        <label class="check">
          <input type="checkbox" name="is_default" /> {t("isDefault")}
        </label>
      </Form>
    </Dialog>
  );
}

const XML = "http://www.w3.org/XML/1998/namespace";

/** The language that a TTML file states for its text; empty for another file. */
async function statedLanguage(file: File | undefined): Promise<string> {
  if (!file || !/\.(ttml|dfxp|xml)$/i.test(file.name)) return "";
  const { documentElement } = new DOMParser().parseFromString(await file.text(), "application/xml");
  return documentElement.getAttributeNS(XML, "lang") ?? "";
}

/** A long track takes minutes; the server ends one that takes longer. */
const TRANSLATE_MS = 15 * 60_000;

type TranslateProps = { subtitle: Subtitle; onDone(): void; onClose(): void };

export function TranslateDialog({ subtitle, onDone, onClose }: TranslateProps) {
  const t = useTexts(texts);
  const send = async ({ target_language = "" }: Record<string, string>) => {
    const { asset_id: video_asset_id, id } = subtitle;
    await vodbox.translateSubtitle({ video_asset_id, id, body: { target_language } }, { timeoutMs: TRANSLATE_MS });
    onDone();
  };
  return (
    <Dialog title={`${t("translate")}: ${subtitle.label}`} onClose={onClose}>
      <Form submit={t("translate")} onSubmit={send}>
        <Field label={t("translateTo")} name="target_language" hint={t("languageHint")} required />
        <p class="fine">{t("translating")}</p>
      </Form>
    </Dialog>
  );
}

type AlignProps = { subtitle: Subtitle; others: readonly Subtitle[]; onDone(text: string): void; onClose(): void };

export function AlignDialog({ subtitle, others, onDone, onClose }: AlignProps) {
  const t = useTexts(texts);
  const options = others
    .filter(({ id }) => id !== subtitle.id)
    .map(({ id, label, language }) => [String(id), `${label} (${language})`] as [string, string]);
  const send = async ({ reference }: Record<string, string>) => {
    const { asset_id: video_asset_id, id } = subtitle;
    const body = { reference_track_id: Number(reference) };
    const { sync } = await vodbox.syncSubtitle({ video_asset_id, id, body });
    onDone(t("aligned", { share: Math.round(sync.match_ratio * 100) }));
  };
  return (
    <Dialog title={t("alignTitle")} onClose={onClose}>
      <Form submit={t("align")} onSubmit={send}>
        <p class="fine">{t("alignHint")}</p>
        <Select label={t("reference")} name="reference" options={options} />
      </Form>
    </Dialog>
  );
}
