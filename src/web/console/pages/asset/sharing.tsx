import { useId } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { CopyButton } from "#web/console/components/copy-button.tsx";
import { embedCode } from "#web/console/embed-code.ts";
import type { ListState } from "#web/console/hooks/use-list.ts";
import { useSession } from "#web/console/session.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Asset, Playback, Share } from "#web/console/types.ts";
import { texts } from "./texts.ts";

/** The name of the share whose code is copied for a signed video: a token in the code would expire. */
const EMBED = "Embed";
const isForEmbedding = ({ name, status, has_password }: Share) =>
  name === EMBED && status === "active" && !has_password;

async function embedShare(id: number): Promise<Share> {
  for await (const share of vodbox.listShares({ id })) if (isForEmbedding(share)) return share;
  return vodbox.createShare({ id, body: { name: EMBED } });
}

type Props = { asset: Asset; playback: Playback; shares: ListState<Share> | null };

/** How to show the video elsewhere. */
export function Sharing({ asset, playback, shares }: Props) {
  const t = useTexts(texts);
  const { may } = useSession();
  const id = useId();
  const { embed_url, external_id } = playback;
  const isSigned = playback.playback_policy === "signed";
  const known = isSigned ? shares?.items.find(isForEmbedding)?.embed_url : embed_url;
  const code = known === undefined ? undefined : embedCode(known, asset);
  const copied = async () => {
    if (code !== undefined) return code;
    const share = await embedShare(asset.id);
    shares?.reload();
    return embedCode(share.embed_url, asset);
  };
  const [server = ""] = embed_url.split("/embed/");
  const playbackId = /^vid_/.test(external_id) ? external_id : String(playback.asset_id);
  const element = [
    `<script src="${server}/svc-player.js" async></script>`,
    `<svc-player playback-id="${playbackId}"${isSigned ? ' token="TOKEN"' : ""}></svc-player>`,
  ].join("\n");
  return (
    <section>
      {code !== undefined && (
        <div class="field">
          <label for={id}>{t("embedCode")}</label>
          <textarea id={id} readOnly rows={4} value={code} />
        </div>
      )}
      <div class="row">
        {(code !== undefined || may("assets:write")) && <CopyButton text={copied} label={t("copyEmbedCode")} />}
        <a href={embed_url.replace("/embed/", "/watch/")} target="_blank" rel="noreferrer">
          {t("watchPage")}
        </a>
        {playback.mp4_url !== undefined && <a href={playback.mp4_url}>{t("mp4")}</a>}
      </div>
      {isSigned && (
        <>
          <p class="fine">{t("signedCode", { name: EMBED })}</p>
          <pre>
            <code>{`curl "${server}/api/v1/playback/${playbackId}" -H "X-API-Key: $KEY"`}</code>
          </pre>
        </>
      )}
      <details>
        <summary>{t("playerElement")}</summary>
        <pre>
          <code>{element}</code>
        </pre>
        <CopyButton text={element} />
      </details>
    </section>
  );
}
