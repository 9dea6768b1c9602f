import type { App } from "../app.ts";
import { loadSecrets } from "../config/secrets.ts";
import type { Broadcast } from "./messages.ts";

/** What many give at once is passed on once: whoever waits looks into the database anyway. */
const PAUSE_MS = 10;

/** Passes on what wakes those who wait in other processes, and gives here what is heard from there; not back again. */
export function connectBroadcast(app: App, tell: (hint: Broadcast) => void): (heard: Broadcast) => void {
  const { signals } = app;
  let isFromElsewhere = false;
  for (const signal of ["job.queued", "delivery.due"] as const) {
    let isDue = false;
    const passOn = () => {
      isDue = false;
      tell({ signal });
    };
    signals.on(signal, () => {
      if (isFromElsewhere || isDue) return;
      isDue = true;
      setTimeout(passOn, PAUSE_MS).unref();
    });
  }
  signals.on("webhook.changed", (id) => {
    if (!isFromElsewhere) tell({ signal: "webhook.changed", id });
  });
  signals.on("secret.rotated", (name) => {
    if (!isFromElsewhere) tell({ signal: "secret.rotated", name });
  });
  return (hint) => {
    isFromElsewhere = true;
    try {
      if (hint.signal === "webhook.changed") signals.emit(hint.signal, hint.id);
      else if (hint.signal === "secret.rotated") {
        app.secrets[hint.name] = loadSecrets(app.config)[hint.name];
        signals.emit(hint.signal, hint.name);
      } else signals.emit(hint.signal);
    } finally {
      isFromElsewhere = false;
    }
  };
}
