import type { LiveNotice } from "./live-state.ts";
import { words } from "./messages.ts";
import type { ErrorCode } from "./player-data.ts";
import type { Frame } from "./template.ts";

/** These go away by themselves. */
const PASSING: readonly string[] = ["asset_not_ready", "live_waiting", "live_ended"] satisfies (
  | ErrorCode
  | LiveNotice
)[];

/** Covers the controls with a message. */
export function showNotice({ controller, message, again }: Frame, reason: ErrorCode | LiveNotice): void {
  controller.classList.add("message-shown");
  controller.inert = true;
  message.hidden = false;
  // Reported immediately, except what recovers by itself.
  message.setAttribute("role", PASSING.includes(reason) ? "status" : "alert");
  message.dataset.reason = reason;
  const text = message.firstElementChild as HTMLElement;
  // A repeated change would be read aloud again.
  if (text.textContent !== words(reason)) text.textContent = words(reason);
  again.hidden = reason !== "network" && reason !== "media";
}

export function hideNotice({ controller, message }: Frame): void {
  controller.classList.remove("message-shown");
  controller.inert = false;
  message.hidden = true;
}
