import { vodbox } from "#web/console/api.ts";
import { CopyButton } from "#web/console/components/copy-button.tsx";
import { embedCode } from "#web/console/embed-code.ts";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { LiveChannel } from "#web/console/types.ts";
import { texts } from "./texts.ts";

/** The longest that there is: a stream has no known end. */
const TOKEN_SECONDS = 43_200;

/** The page where a channel is watched or embedded, of the server's public address; with a token when it is signed. */
export async function pageUrl(channel: LiveChannel, page: "watch" | "embed"): Promise<string> {
  const [server = ""] = channel.hls_url.split("/live/");
  const url = new URL(`${server}/${page}/live/${channel.channel}`);
  if (channel.playback_policy === "signed") {
    const { token } = await vodbox.createChannelToken({ id: channel.id, body: { expires_in: TOKEN_SECONDS } });
    url.searchParams.set("token", token);
  }
  return url.href;
}

/** The links that are passed on. */
export function ShareLinks({ channel }: { channel: LiveChannel }) {
  const t = useTexts(texts);
  const code = async () =>
    embedCode(await pageUrl(channel, "embed"), { title: channel.name, width: null, height: null });
  return (
    <>
      <div class="row">
        <CopyButton text={() => pageUrl(channel, "watch")} label={t("copyWatchLink")} />
        <CopyButton text={code} label={t("copyEmbedCode")} />
      </div>
      {channel.playback_policy === "signed" && <p class="fine">{t("signedLink")}</p>}
    </>
  );
}
