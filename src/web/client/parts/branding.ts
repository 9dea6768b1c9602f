import type { PlayerData } from "./player-data.ts";
import type { Frame } from "./template.ts";

/** Shows the logo of the page or of the video's tenant, and the button to download where there is a file. */
export function showBranding({ logo, download }: Frame, ownLogo: string | null, data: PlayerData | null): void {
  const logoUrl = ownLogo ?? data?.logo_url;
  const downloadUrl = data?.download_url ?? null;
  logo.hidden = !logoUrl;
  if (logoUrl && logo.getAttribute("src") !== logoUrl) logo.src = logoUrl;
  download.hidden = downloadUrl === null;
  download.onclick = () => {
    const link = document.createElement("a");
    link.href = downloadUrl ?? "";
    // The server names the file.
    link.download = "";
    link.click();
  };
}
