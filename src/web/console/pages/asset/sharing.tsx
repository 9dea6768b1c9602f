import { useId } from "preact/hooks";
import { CopyButton } from "../../components/copy-button.tsx";
import { dateTime } from "../../format.ts";
import { useLanguage, useTexts } from "../../texts/texts.tsx";
import type { Playback } from "../../types.ts";
import { texts } from "./texts.ts";

const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");

/** How to show the video elsewhere. */
export function Sharing({ title, playback }: { title: string; playback: Playback }) {
  const t = useTexts(texts);
  const { language } = useLanguage();
  const id = useId();
  const { embed_url, external_id, token_expires_at } = playback;
  const isSigned = playback.playback_policy === "signed";
  const [server = ""] = embed_url.split("/embed/");
  const code = `<iframe src="${escaped(embed_url)}" width="640" height="360" allow="autoplay; fullscreen; picture-in-picture" title="${escaped(title)}"></iframe>`;
  const playbackId = /^vid_/.test(external_id) ? external_id : String(playback.asset_id);
  const element = [
    `<script src="${server}/svc-player.js" async></script>`,
    `<svc-player playback-id="${playbackId}"${isSigned ? ' token="TOKEN"' : ""}></svc-player>`,
  ].join("\n");
  return (
    <section>
      <div class="field">
        <label for={id}>{t("embedCode")}</label>
        <textarea id={id} readOnly rows={4} value={code} />
      </div>
      <div class="row">
        <CopyButton text={code} />
        <a href={embed_url.replace("/embed/", "/watch/")} target="_blank" rel="noreferrer">
          {t("watchPage")}
        </a>
        {playback.mp4_url !== undefined && <a href={playback.mp4_url}>{t("mp4")}</a>}
      </div>
      {isSigned && (
        <>
          <p class="fine">{t("signedCode", { time: dateTime(token_expires_at, language) })}</p>
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
