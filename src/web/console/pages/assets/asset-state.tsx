import { Badge } from "#web/console/components/badge.tsx";
import { Progress } from "#web/console/components/progress.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Asset } from "#web/console/types.ts";
import { texts } from "./texts.ts";

/** Whether a video plays, and how far it is encoded. */
export function AssetState({ asset: { playback_status, encoding_status, progress, stage } }: { asset: Asset }) {
  const t = useTexts(texts);
  const isRunning = playback_status === "processing" && progress > 0;
  return (
    <span class="state">
      <Badge state={playback_status} text={isRunning && stage ? stage : t(playback_status)} />
      {(isRunning || encoding_status === "partial") && <Progress value={progress / 100} label={t("encoding")} />}
    </span>
  );
}
