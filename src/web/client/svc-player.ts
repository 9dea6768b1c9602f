import { SvcPlayer } from "./parts/element.ts";

/** `<svc-player>`. A page that loads the script twice keeps the first. */
if (!customElements.get("svc-player")) customElements.define("svc-player", SvcPlayer);
