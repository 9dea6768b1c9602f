import { useState } from "preact/hooks";
import { List } from "#clients/typescript/list.ts";
import { vodbox } from "#web/console/api.ts";
import { Badge } from "#web/console/components/badge.tsx";
import { CopyButton } from "#web/console/components/copy-button.tsx";
import { ConfirmDialog } from "#web/console/components/dialog.tsx";
import { ListView } from "#web/console/components/list-view.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { Table } from "#web/console/components/table.tsx";
import { Time } from "#web/console/components/time.tsx";
import { useToast } from "#web/console/components/toast.tsx";
import { embedCode } from "#web/console/embed-code.ts";
import { useAttempt } from "#web/console/hooks/use-attempt.ts";
import { type ListState, useList } from "#web/console/hooks/use-list.ts";
import { useSession } from "#web/console/session.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Asset, Share } from "#web/console/types.ts";
import { ShareDialog } from "./share-dialog.tsx";
import { texts } from "./texts.ts";

const STATUS_TEXTS = { active: "active", expired: "expired", played_out: "playedOut" } as const;
const BADGES = { active: "ready", expired: "failed", played_out: "failed" } as const;

/** For who may not see any. */
const NO_SHARES = new List<Share>(
  async () => [],
  async () => ({ items: [], cursor: null }),
);

/** The shares of a video; null for a session that may not see them. */
export function useShares(id: number): ListState<Share> | null {
  const { may } = useSession();
  const mayShare = may("assets:write") || may("playback:read");
  const list = useList(() => (mayShare ? vodbox.listShares({ id }) : NO_SHARES), [id, mayShare]);
  return mayShare ? list : null;
}

/** The links of a video that work without an account. */
export function Shares({ asset, list }: { asset: Asset; list: ListState<Share> }) {
  const t = useTexts(texts);
  const { may } = useSession();
  const toast = useToast();
  const { failure, attempt } = useAttempt();
  const [edited, setEdited] = useState<Share | null>(null);
  const [ended, setEnded] = useState<Share | null>(null);
  const mayWrite = may("assets:write");
  const { id } = asset;
  return (
    <section aria-labelledby="shares">
      <h2 id="shares">{t("shares")}</h2>
      <ErrorNotice error={failure} />
      <ListView list={list} empty={t("noShares")}>
        {(items) => (
          <Table
            items={items}
            columns={[
              { title: t("name"), cell: ({ name }) => <span class="breaking share-name">{name ?? "–"}</span> },
              {
                title: t("link"),
                cell: ({ url }) => (
                  <a class="breaking" href={url} target="_blank" rel="noreferrer">
                    {url}
                  </a>
                ),
              },
              {
                title: t("status"),
                cell: ({ status, has_password, allow_download }) => (
                  <span class="row wrapping">
                    <Badge state={BADGES[status]} text={t(STATUS_TEXTS[status])} />
                    {has_password && <span>{t("password")}</span>}
                    {allow_download && <span>{t("downloadText")}</span>}
                  </span>
                ),
              },
              {
                title: t("plays"),
                cell: ({ play_count, max_plays }) => (
                  <span class="nowrap">{max_plays === null ? play_count : `${play_count} / ${max_plays}`}</span>
                ),
              },
              { title: t("expiresOn"), cell: ({ expires_at }) => <Time at={expires_at} /> },
              {
                title: t("actions"),
                cell: (share) => (
                  <span class="row wrapping">
                    <CopyButton text={share.url} label={t("copyLink")} />
                    <CopyButton text={embedCode(share.embed_url, asset)} label={t("embedCode")} />
                    {mayWrite && (
                      <>
                        <button type="button" onClick={() => setEdited(share)}>
                          {t("edit")}
                        </button>
                        <button type="button" onClick={() => setEnded(share)}>
                          {t("deleteShare")}
                        </button>
                      </>
                    )}
                  </span>
                ),
              },
            ]}
          />
        )}
      </ListView>
      {edited && (
        <ShareDialog
          assetId={id}
          share={edited}
          onDone={() => {
            setEdited(null);
            list.reload();
            toast(t("saved"));
          }}
          onClose={() => setEdited(null)}
        />
      )}
      {ended && (
        <ConfirmDialog
          text={t("deleteShareQuestion", { name: ended.name ?? ended.url })}
          onConfirm={async () => {
            setEnded(null);
            await attempt(() => vodbox.deleteShare({ id, share_id: ended.id }));
            list.reload();
          }}
          onClose={() => setEnded(null)}
        />
      )}
    </section>
  );
}
