import { useConnected } from "../hooks/live.ts";
import { useTexts } from "../texts/texts.tsx";

/** Shown while the server does not respond; the page continues by itself when it does. */
export function ConnectionNotice() {
  const t = useTexts();
  const isConnected = useConnected();
  return (
    <div class={isConnected ? "connection" : "connection lost"} role="status">
      {isConnected ? "" : t("unreachable")}
    </div>
  );
}
