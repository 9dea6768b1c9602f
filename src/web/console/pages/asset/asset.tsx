import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import lazy from "preact-iso/lazy";
import { useRoute } from "preact-iso/router";
import { vodbox } from "#web/console/api.ts";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { type LiveEvent, useLive } from "#web/console/hooks/live.ts";
import { useResource } from "#web/console/hooks/use-resource.ts";
import { usePageTitle } from "#web/console/page-title.tsx";
import { useSession } from "#web/console/session.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Asset, Playback } from "#web/console/types.ts";
import { Actions } from "./actions.tsx";
import { Facts } from "./facts.tsx";
import { Overview } from "./overview.tsx";
import { Player, Waiting } from "./player.tsx";
import { PlayerFrame } from "./player-frame.ts";
import type { SectionProps } from "./section.ts";
import { useShares } from "./shares.tsx";
import { Tabs } from "./tabs.tsx";
import { texts } from "./texts.ts";
import { useAssetEvents } from "./use-asset-events.ts";
import { Warnings } from "./warnings.tsx";

const Subtitles = lazy(() => import("./subtitles.tsx"));
const Audio = lazy(() => import("./audio.tsx"));
const Tracks = lazy(() => import("./tracks.tsx"));
const Poster = lazy(() => import("./poster.tsx"));
const Renditions = lazy(() => import("./renditions.tsx"));
const Clip = lazy(() => import("./clip.tsx"));
const Organize = lazy(() => import("./organize.tsx"));
const History = lazy(() => import("./history.tsx"));

const TABS = [
  "overview",
  "subtitles",
  "audio",
  "chapters",
  "poster",
  "renditions",
  "clip",
  "organize",
  "history",
] as const;
type Tab = (typeof TABS)[number];

/** A token that expires sooner is not used to load the player again. */
const RENEW_BEFORE_MS = 60_000;

/** When the connection was lost, useAssetEvents loads the asset again. */
const nothing = () => {};

/** One video: the player, its data, and what can be done with it. */
export default function AssetPage() {
  const { params } = useRoute();
  const id = Number(params.id);
  const { value: asset, error, reload, set } = useResource(() => vodbox.getAsset({ id }), [id]);
  const t = useTexts(texts);
  const [deletedId, setDeletedId] = useState<number | null>(null);
  const onEvent = useCallback(
    ({ type, data }: LiveEvent) => {
      if (data.asset_id !== String(id)) return;
      if (type === "video.asset.deleted") setDeletedId(id);
      // Progress arrives up to four times a second, and contains all that changes.
      if (type === "job.progress" && asset)
        set({ ...asset, progress: data.progress as number, stage: data.stage as string | null });
    },
    [id, asset, set],
  );
  useLive(onEvent, nothing);
  useAssetEvents(id, "video.", reload);
  if (deletedId === id) return <p class="empty">{t("wasDeleted")}</p>;
  if (error && !asset) return <ErrorNotice error={error} onRetry={reload} />;
  if (!asset) return <p>{t("loading")}</p>;
  return <Details key={id} asset={asset} onChange={set} />;
}

/** The tab in the address, which is kept when the page is loaded again. */
function useTab() {
  const named = new URLSearchParams(location.search).get("tab");
  const [tab, setTab] = useState<Tab>(TABS.find((one) => one === named) ?? "overview");
  const select = (next: Tab) => {
    setTab(next);
    const url = new URL(location.href);
    if (next === "overview") url.searchParams.delete("tab");
    else url.searchParams.set("tab", next);
    // Not through the router, which would move the focus away from the tab.
    history.replaceState(history.state, "", url);
  };
  return [tab, select] as const;
}

function timeInUrl(): number {
  const seconds = Number(new URLSearchParams(location.search).get("t"));
  return seconds > 0 && Number.isFinite(seconds) ? seconds : 0;
}

function Details({ asset, onChange }: { asset: Asset; onChange(asset: Asset): void }) {
  const t = useTexts(texts);
  const { may } = useSession();
  usePageTitle(asset.title || asset.external_id);
  const [tab, setTab] = useTab();
  const player = useMemo(() => new PlayerFrame(), []);
  const shares = useShares(asset.id);
  const isPlayable = asset.playback_status === "ready" && may("playback:read");
  const { id, playback_policy } = asset;
  const playback = useResource<Playback | null>(
    async () => (isPlayable ? await vodbox.getPlayback({ id: String(id) }) : null),
    [id, isPlayable, playback_policy],
  );
  // The player starts again at the same position. A result of a search links to a time.
  const [start, setStart] = useState({ version: 0, seconds: timeInUrl() });
  const reloadPlayer = () => {
    const seconds = player.seconds < asset.duration_seconds ? player.seconds : 0;
    setStart(({ version }) => ({ version: version + 1, seconds }));
    const expiresAt = Date.parse(playback.value?.token_expires_at ?? "");
    if (expiresAt - Date.now() < RENEW_BEFORE_MS) playback.reload();
  };
  useEffect(() => player.preview(null), [tab]);
  // A player that has loaded other media shows those until it is loaded again. Media that are completed stay in their folder.
  const folder = asset.manifest_path?.slice(0, asset.manifest_path.lastIndexOf("/")) ?? null;
  const shown = useRef(folder);
  useEffect(() => {
    if (shown.current !== null && shown.current !== folder) reloadPlayer();
    shown.current = folder;
  }, [folder]);
  const section: SectionProps = { asset, playback: playback.value, player, reloadPlayer, onChange };
  return (
    <>
      <Actions asset={asset} onChange={onChange} onShared={() => shares?.reload()} />
      <div class={tab === "overview" ? "columns" : "columns at-work"}>
        <div>
          <ErrorNotice error={playback.error} onRetry={playback.reload} />
          {isPlayable ? (
            <Player key={start.version} playback={playback.value} player={player} start={start.seconds} />
          ) : (
            <Waiting asset={asset} />
          )}
          <Warnings warnings={asset.warnings} />
        </div>
        <Facts asset={asset} />
      </div>
      <Tabs label={t("sections")} tabs={TABS.map((one) => [one, t(one)])} selected={tab} onSelect={setTab}>
        {tab === "overview" && <Overview {...section} shares={shares} />}
        {tab === "subtitles" && <Subtitles {...section} />}
        {tab === "audio" && <Audio {...section} />}
        {tab === "chapters" && <Tracks {...section} />}
        {tab === "poster" && <Poster {...section} />}
        {tab === "renditions" && <Renditions {...section} />}
        {tab === "clip" && <Clip key={asset.manifest_path} {...section} />}
        {tab === "organize" && <Organize {...section} />}
        {tab === "history" && <History {...section} />}
      </Tabs>
    </>
  );
}
