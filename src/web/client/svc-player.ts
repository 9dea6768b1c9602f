import { SvcPlayer } from "./parts/element.ts";

/** `<svc-player>`. If a page loads the script twice, the first definition stays. */
if (!customElements.get("svc-player")) customElements.define("svc-player", SvcPlayer);
