import { create } from "content-disposition";
import type { App } from "#app.ts";
import { hasPoster } from "#features/assets/poster.ts";
import { basePath } from "#features/assets/urls.ts";
import { sharePath } from "#features/shares/schema.ts";
import type { HttpError } from "#lib/base";
import { fileNameOf } from "#model/object-keys.ts";
import { suspended, videoNotFound } from "./asset-view.ts";
import { html, type Markup } from "./html.ts";
import type { Shared } from "./open-share.ts";
import type { PageName } from "./page.ts";
import { message, type Notice } from "./player-page.ts";
import { oembedLinks, shareTags, sizeOf, summaryOf } from "./sharing.ts";

/** What the pages of a share show besides the player. */

/** The page of a share that cannot be opened: of an error that `requireOpenShare` throws. */
export function refusedShare({ status }: HttpError): Notice {
  if (status === 410) return message(410, "This link has ended", "Ask the sender for a new one.");
  return status === 403 ? suspended() : videoNotFound();
}

/** Asks for the password, without anything of the asset. `fault`: of the last try. */
export function passwordForm(app: App, page: PageName, code: string, fault: HttpError | null): Notice {
  const action = basePath(app.baseUrl()) + sharePath(page, code);
  // Browsers refuse to focus fields in frames of other sites, and report it as a fault.
  const refused = html` aria-invalid="true" aria-describedby="fault"`;
  const form = html`<form method="post" action="${action}"><label for="password">Password</label><input id="password" name="password" type="password" maxlength="1024" autocomplete="off" required${page === "watch" && html` autofocus`}${fault !== null && refused}>${fault && html`<p id="fault" role="alert">${fault.message}</p>`}<button>Watch</button></form>`;
  return {
    ...message(fault?.status ?? 200, "Enter the password", "This video is protected.", form),
    hasForm: true,
    headers: { ...fault?.extra.headers },
  };
}

/** A form, because it works without a script; the token proves that its viewer knew the password. */
export function downloadButton(app: App, code: string, token: string): Markup {
  const action = `${basePath(app.baseUrl())}${sharePath("watch", code)}/download`;
  return html`<form class="download" method="get" action="${action}"><input type="hidden" name="token" value="${token}"><button>Download</button></form>`;
}

/** What a viewer may download: the MP4 file, else the original; null where there is none. */
export function downloadOf({
  asset,
}: Pick<Shared, "asset">): { key: string; contentType: string; disposition: string } | null {
  const { mp4Path, title, originalFilename, provider, inputStatus, sourceKey, sourceDeletedAt } = asset;
  if (mp4Path !== null && asset.playbackStatus === "ready")
    return { key: mp4Path, contentType: "video/mp4", disposition: create(`${title || "video"}.mp4`) };
  const hasSource =
    provider === "managed" && inputStatus === "uploaded" && sourceKey !== "" && sourceDeletedAt === null;
  if (!hasSource) return null;
  const name = originalFilename ?? fileNameOf(sourceKey);
  return { key: sourceKey, contentType: "application/octet-stream", disposition: create(name) };
}

/** Link previews of a share without a password. */
export function shareHead(app: App, { share, asset }: Shared): Markup | false {
  if (share.passwordHash !== null) return false;
  const url = (page: PageName) => app.baseUrl() + sharePath(page, share.code);
  const watch = url("watch");
  const tags = shareTags({
    ...summaryOf(asset),
    watch,
    embed: url("embed"),
    size: sizeOf(asset),
    image: hasPoster(asset) ? `${watch}/poster.jpg` : null,
  });
  return html`${tags}
${oembedLinks(app, watch, asset.title)}`;
}
