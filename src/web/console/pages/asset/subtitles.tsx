import { useState } from "preact/hooks";
import { SUBTITLE_ROLE } from "#build/client/enums.ts";
import { vodbox } from "#web/console/api.ts";
import { Badge } from "#web/console/components/badge.tsx";
import { ConfirmDialog } from "#web/console/components/dialog.tsx";
import { ListView } from "#web/console/components/list-view.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { useToast } from "#web/console/components/toast.tsx";
import { bytes } from "#web/console/format.ts";
import { useAttempt } from "#web/console/hooks/use-attempt.ts";
import { useList } from "#web/console/hooks/use-list.ts";
import { useResource } from "#web/console/hooks/use-resource.ts";
import { useSession } from "#web/console/session.tsx";
import { useLanguage, useTexts } from "#web/console/texts/texts.tsx";
import type { Subtitle } from "#web/console/types.ts";
import { GenerateDialog } from "./generate-dialog.tsx";
import { generateTexts } from "./generate-texts.ts";
import { saveText } from "./save-file.ts";
import type { SectionProps } from "./section.ts";
import { AlignDialog, SUBTITLE_ROLE_TEXTS, TranslateDialog, UploadDialog } from "./subtitle-dialogs.tsx";
import { SubtitleEditor } from "./subtitle-editor.tsx";
import { texts } from "./texts.ts";
import { useAssetEvents } from "./use-asset-events.ts";

type Open = { what: "translate" | "align" | "delete"; subtitle: Subtitle } | { what: "upload" | "generate" };
const ORIGINS = { upload: "upload_source", translation: "translation", auto: "auto" } as const;

export default function Subtitles({ asset, player, reloadPlayer }: SectionProps) {
  const t = useTexts(texts);
  const own = useTexts(generateTexts);
  const { language } = useLanguage();
  const { may } = useSession();
  const toast = useToast();
  const [open, setOpen] = useState<Open | null>(null);
  const [edited, setEdited] = useState<Subtitle | null>(null);
  const [isChanged, setChanged] = useState(false);
  /** The track to edit next, once it is confirmed that changes of the one before are discarded. */
  const [next, setNext] = useState<Subtitle | null>(null);
  const { failure, attempt } = useAttempt();
  const list = useList(() => vodbox.listSubtitles({ video_asset_id: asset.id }), [asset.id]);
  const features = useResource(() => vodbox.getFeatures(), []);
  useAssetEvents(asset.id, "video.subtitle.", list.reload);
  const mayWrite = may("assets:write");
  const at = ({ id }: Subtitle) => ({ video_asset_id: asset.id, id });
  const done = (text: string) => {
    setOpen(null);
    toast(text);
    list.reload();
    reloadPlayer();
  };
  const edit = (subtitle: Subtitle | null) => {
    setEdited(subtitle);
    setChanged(false);
    setNext(null);
  };
  const uploaded = ({ warnings }: Subtitle) => done([t("saved"), ...warnings.map(({ message }) => message)].join(". "));
  const download = (one: Subtitle) => () =>
    attempt(async () => {
      const { content = "" } = await vodbox.getSubtitle(at(one));
      saveText(content, `${asset.title}.${one.language}.vtt`, "text/vtt");
    });
  const makeDefault = (one: Subtitle) => () =>
    attempt(async () => {
      await vodbox.updateSubtitle({ ...at(one), body: { is_default: true } });
      done(t("saved"));
    });
  const changeRole = (one: Subtitle, role: Subtitle["role"]) =>
    attempt(async () => {
      await vodbox.updateSubtitle({ ...at(one), body: { role } });
      done(t("saved"));
    });
  const remove = (one: Subtitle) => () =>
    attempt(async () => {
      setOpen(null);
      await vodbox.deleteSubtitle(at(one));
      if (edited?.id === one.id) edit(null);
      done(t("deleted"));
    });
  return (
    <>
      <div class="page-head">
        <h2>{t("subtitles")}</h2>
        {mayWrite && (
          <div class="row">
            <button
              type="button"
              disabled={!features.value?.captions || asset.playback_status !== "ready"}
              aria-describedby={features.value?.captions === false ? "no-transcription" : undefined}
              onClick={() => setOpen({ what: "generate" })}
            >
              {own("generate")}
            </button>
            <button type="button" onClick={() => setOpen({ what: "upload" })}>
              {t("uploadSubtitle")}
            </button>
          </div>
        )}
      </div>
      {mayWrite && features.value?.captions === false && (
        <p class="fine" id="no-transcription">
          {own("noTranscription")}
        </p>
      )}
      <ErrorNotice error={failure} />
      <ListView list={list} empty={t("noSubtitles")}>
        {(items) => (
          <ul class="rows">
            {items.map((one) => (
              <li key={one.id}>
                <div>
                  <p class="row">
                    <strong>{one.label}</strong>
                    <Badge state={one.status} text={t(one.status)} />
                    {one.is_default && <Badge state="active" text={t("isDefault")} />}
                    {one.warnings.map(({ code, count }) => (
                      <Badge key={code} state="warned" text={t("cuesSkipped", { count })} />
                    ))}
                  </p>
                  <p class="fine">
                    <code>{one.language}</code> · {t(ORIGINS[one.source])} · {bytes(one.bytes, language)}
                    {one.confidence !== null && ` · ${own("confidence", { share: Math.round(one.confidence * 100) })}`}
                  </p>
                  {one.error && <p class="fine">{one.error.message}</p>}
                  {one.warnings.map(({ code, message }) => (
                    <p key={code} class="fine">
                      {message}
                    </p>
                  ))}
                </div>
                <div class="row">
                  {mayWrite && one.status !== "pending" && (
                    <>
                      <select
                        aria-label={`${t("subtitleRole")}: ${one.label}`}
                        onChange={({ currentTarget: { value } }) => changeRole(one, value as Subtitle["role"])}
                      >
                        {SUBTITLE_ROLE.map((role) => (
                          <option key={role} value={role} selected={role === one.role}>
                            {t(SUBTITLE_ROLE_TEXTS[role])}
                          </option>
                        ))}
                      </select>
                      <button
                        type="button"
                        onClick={() => {
                          if (edited?.id === one.id) return;
                          if (isChanged) setNext(one);
                          else edit(one);
                        }}
                      >
                        {t("edit")}
                      </button>
                      <button
                        type="button"
                        disabled={!features.value?.translation}
                        aria-describedby={features.value?.translation === false ? "no-translation" : undefined}
                        onClick={() => setOpen({ what: "translate", subtitle: one })}
                      >
                        {t("translate")}
                      </button>
                      {items.length > 1 && (
                        <button type="button" onClick={() => setOpen({ what: "align", subtitle: one })}>
                          {t("align")}
                        </button>
                      )}
                      {!one.is_default && (
                        <button type="button" onClick={makeDefault(one)}>
                          {t("makeDefault")}
                        </button>
                      )}
                    </>
                  )}
                  {one.status !== "pending" && (
                    <button type="button" onClick={download(one)}>
                      {t("downloadText")}
                    </button>
                  )}
                  {mayWrite && (
                    <button type="button" class="danger" onClick={() => setOpen({ what: "delete", subtitle: one })}>
                      {t("delete")}
                    </button>
                  )}
                </div>
              </li>
            ))}
          </ul>
        )}
      </ListView>
      {mayWrite && features.value?.translation === false && list.items.length > 0 && (
        <p class="fine" id="no-translation">
          {t("noTranslation")}
        </p>
      )}
      {edited && (
        <SubtitleEditor
          key={edited.id}
          subtitle={edited}
          player={player}
          onChanged={setChanged}
          onSaved={() => {
            edit(null);
            done(t("saved"));
          }}
          onClose={() => edit(null)}
        />
      )}
      {next && <ConfirmDialog text={t("discardQuestion")} onConfirm={() => edit(next)} onClose={() => setNext(null)} />}
      {open?.what === "upload" && <UploadDialog assetId={asset.id} onDone={uploaded} onClose={() => setOpen(null)} />}
      {open?.what === "generate" && (
        <GenerateDialog
          assetId={asset.id}
          mayTranslate={features.value?.translation ?? false}
          onDone={() => done(own("generating"))}
          onClose={() => setOpen(null)}
        />
      )}
      {open?.what === "translate" && (
        <TranslateDialog subtitle={open.subtitle} onDone={() => done(t("translated"))} onClose={() => setOpen(null)} />
      )}
      {open?.what === "align" && (
        <AlignDialog subtitle={open.subtitle} others={list.items} onDone={done} onClose={() => setOpen(null)} />
      )}
      {open?.what === "delete" && (
        <ConfirmDialog text={t("deleteSubtitle")} onConfirm={remove(open.subtitle)} onClose={() => setOpen(null)} />
      )}
    </>
  );
}
