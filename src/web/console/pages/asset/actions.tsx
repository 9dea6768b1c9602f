import { useState } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { vodbox } from "#web/console/api.ts";
import { pagePath } from "#web/console/base.ts";
import { Badge } from "#web/console/components/badge.tsx";
import { ConfirmDialog } from "#web/console/components/dialog.tsx";
import { MoreMenu } from "#web/console/components/more-menu.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { PageHead } from "#web/console/components/page-head.tsx";
import { useToast } from "#web/console/components/toast.tsx";
import { useAttempt } from "#web/console/hooks/use-attempt.ts";
import { useSession } from "#web/console/session.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Asset } from "#web/console/types.ts";
import { saveUrl } from "./save-file.ts";
import { ShareDialog } from "./share-dialog.tsx";
import { texts } from "./texts.ts";

type Props = {
  asset: Asset;
  onChange(asset: Asset): void;
  /** Called when another link to the video exists. */
  onShared(): void;
};

/** The title, and what can be done with the whole video. */
export function Actions({ asset, onChange, onShared }: Props) {
  const t = useTexts(texts);
  const { may } = useSession();
  const { route } = useLocation();
  const toast = useToast();
  const [question, setQuestion] = useState<"asset" | "source" | null>(null);
  const [isSharing, setSharing] = useState(false);
  const { failure, attempt } = useAttempt();
  const { id } = asset;
  const trying = (work: () => Promise<void>) => () => {
    setQuestion(null);
    return attempt(work);
  };
  const download = trying(async () => {
    const { url, filename } = await vodbox.getDownload({ id });
    saveUrl(url, filename);
  });
  const retry = trying(async () => {
    onChange((await vodbox.retryAsset({ id })).asset);
    toast(t("retried"));
  });
  const publish = trying(async () => {
    onChange(await vodbox.updateAsset({ id, body: { video_asset: { playback_policy: "public" } } }));
    toast(t("published"));
  });
  const deleteSource = trying(async () => {
    onChange(await vodbox.deleteSource({ id }));
    toast(t("deleted"));
  });
  const deleteAsset = trying(async () => {
    await vodbox.deleteAsset({ id });
    toast(t("deleted"));
    route(pagePath("assets"));
  });
  const hasSource =
    asset.provider === "managed" && asset.input_status === "uploaded" && asset.source_deleted_at === null;
  return (
    <>
      <PageHead
        title={asset.title}
        back="assets"
        state={<Badge state={asset.playback_status} text={t(asset.playback_status)} />}
      >
        {may("assets:write") && (
          <>
            {asset.error && hasSource && (
              <button type="button" class="primary" onClick={retry}>
                {t("retryAsset")}
              </button>
            )}
            {asset.playback_policy === "signed" && (
              <button type="button" onClick={publish}>
                {t("publish")}
              </button>
            )}
            <button type="button" class="primary" onClick={() => setSharing(true)}>
              {t("share")}
            </button>
          </>
        )}
        <MoreMenu>
          <a href={`${pagePath("analytics")}?asset=${id}`}>{t("analytics")}</a>
          {may("assets:write") && hasSource && (
            <button type="button" onClick={download}>
              {t("download")}
            </button>
          )}
          {may("assets:write") && hasSource && asset.playback_status === "ready" && (
            <button type="button" onClick={() => setQuestion("source")}>
              {t("deleteSource")}
            </button>
          )}
        </MoreMenu>
        {may("assets:write") && (
          <button type="button" class="danger" onClick={() => setQuestion("asset")}>
            {t("delete")}
          </button>
        )}
      </PageHead>
      <ErrorNotice error={failure} />
      {isSharing && (
        <ShareDialog
          assetId={id}
          share={null}
          onDone={() => {
            setSharing(false);
            onShared();
            toast(t("saved"));
          }}
          onClose={() => setSharing(false)}
        />
      )}
      {question && (
        <ConfirmDialog
          text={question === "asset" ? t("deleteAsset") : t("deleteSourceQuestion")}
          onConfirm={question === "asset" ? deleteAsset : deleteSource}
          onClose={() => setQuestion(null)}
        />
      )}
    </>
  );
}
