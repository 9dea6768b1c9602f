import { useState } from "preact/hooks";
import { useTexts } from "../texts/texts.tsx";

/** Copies `text`; it says so afterwards. */
export function CopyButton({ text, label }: { text: string; label?: string }) {
  const t = useTexts();
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await (navigator.clipboard ? navigator.clipboard.writeText(text) : copyBySelection(text));
    setCopied(true);
  };
  return (
    <button type="button" onClick={copy}>
      {isCopied ? t("copied") : (label ?? t("copy"))}
    </button>
  );
}

/** Without TLS browsers have no clipboard API, except on localhost. */
function copyBySelection(text: string): void {
  const area = document.createElement("textarea");
  area.value = text;
  // A modal dialog makes everything outside of it inert.
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
