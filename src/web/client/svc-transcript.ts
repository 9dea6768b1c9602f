import { SvcTranscript } from "./parts/transcript/panel.ts";

/** `<svc-transcript>`, which the player loads when it has to show what is said. */
if (!customElements.get("svc-transcript")) customElements.define("svc-transcript", SvcTranscript);
