import { Progress } from "#web/console/components/progress.tsx";
import { Time } from "#web/console/components/time.tsx";
import { bytes, count, duration } from "#web/console/format.ts";
import { useLanguage, useTexts } from "#web/console/texts/texts.tsx";
import type { Asset } from "#web/console/types.ts";
import { texts } from "./texts.ts";

export function Facts({ asset }: { asset: Asset }) {
  const t = useTexts(texts);
  const { language } = useLanguage();
  return (
    <dl class="facts">
      {asset.encoding_status === "partial" && (
        <>
          <dt>{t("encoding")}</dt>
          <dd>
            <Progress value={asset.progress / 100} label={t("encoding")} />
          </dd>
        </>
      )}
      {asset.error && asset.playback_status === "ready" && (
        <>
          <dt>{t("errored")}</dt>
          <dd>{asset.error.message}</dd>
        </>
      )}
      <dt>{t("duration")}</dt>
      <dd>{duration(asset.duration_seconds)}</dd>
      <dt>{t("resolution")}</dt>
      <dd>{asset.width === null ? "–" : `${asset.width} × ${asset.height}`}</dd>
      {asset.frame_rate !== null && (
        <>
          <dt>{t("frameRate")}</dt>
          <dd>{count(asset.frame_rate, language)}</dd>
        </>
      )}
      <dt>{t("size")}</dt>
      <dd>{bytes(asset.storage_bytes, language)}</dd>
      <dt>{t("source")}</dt>
      <dd>
        {bytes(asset.source_bytes, language)}
        {asset.source_deleted_at !== null && ` (${t("sourceDeleted")})`}
      </dd>
      {asset.original_filename !== null && (
        <>
          <dt>{t("file")}</dt>
          <dd class="breaking">{asset.relative_path ?? asset.original_filename}</dd>
        </>
      )}
      <dt>{t("created")}</dt>
      <dd>
        <Time at={asset.created_at} />
      </dd>
      {asset.expires_at !== null && (
        <>
          <dt>{t("expiresAt")}</dt>
          <dd>
            <Time at={asset.expires_at} />
          </dd>
        </>
      )}
      <dt>ID</dt>
      <dd>
        <code>{asset.external_id}</code>
      </dd>
    </dl>
  );
}
