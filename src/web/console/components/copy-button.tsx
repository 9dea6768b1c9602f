import { useState } from "preact/hooks";
import { useAttempt } from "../hooks/use-attempt.ts";
import { useTexts } from "../texts/texts.tsx";
import { ErrorNotice } from "./notice.tsx";

type Props = { text: string | (() => Promise<string>); label?: string };

/** Copies `text`, or what it resolves with; it says so afterwards. One with a label keeps its name. */
export function CopyButton({ text, label }: Props) {
  const t = useTexts();
  const { failure, attempt } = useAttempt();
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    if (await attempt(async () => toClipboard(typeof text === "string" ? text : await text()))) setCopied(true);
  };
  return (
    <>
      <button type="button" onClick={copy}>
        {isCopied && label === undefined ? t("copied") : (label ?? t("copy"))}
      </button>
      {label !== undefined && (
        <span role="status" class="fine">
          {isCopied ? t("copied") : ""}
        </span>
      )}
      <ErrorNotice error={failure} />
    </>
  );
}

const toClipboard = (text: string) =>
  navigator.clipboard ? navigator.clipboard.writeText(text) : copyBySelection(text);

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
