import type { App } from "#app.ts";
import { setTimeout } from "#lib/base";
import { loadSecrets } from "../config/secrets.ts";
import type { Broadcast } from "./messages.ts";

/** Signals that are emitted together are sent once; the receiver reads the database anyway. */
const PAUSE_MS = 10;

/** Sends signals of this process to its peers, and emits theirs here. A received signal is not sent back. */
export function connectBroadcast(app: App, send: (message: Broadcast) => void): (message: Broadcast) => void {
  const { signals } = app;
  let isFromElsewhere = false;
  for (const signal of ["job.queued", "delivery.due"] as const) {
    let isDue = false;
    const passOn = () => {
      isDue = false;
      send({ signal });
    };
    signals.on(signal, () => {
      if (isFromElsewhere || isDue) return;
      isDue = true;
      setTimeout(passOn, PAUSE_MS).unref();
    });
  }
  signals.on("webhook.changed", (id) => {
    if (!isFromElsewhere) send({ signal: "webhook.changed", id });
  });
  signals.on("secret.rotated", (name) => {
    if (!isFromElsewhere) send({ signal: "secret.rotated", name });
  });
  return (message) => {
    isFromElsewhere = true;
    try {
      if (message.signal === "webhook.changed") signals.emit(message.signal, message.id);
      else if (message.signal === "secret.rotated") {
        app.secrets[message.name] = loadSecrets(app.config)[message.name];
        signals.emit(message.signal, message.name);
      } else signals.emit(message.signal);
    } finally {
      isFromElsewhere = false;
    }
  };
}
