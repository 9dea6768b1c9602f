import { useState } from "preact/hooks";
import { copyText } from "#web/client/parts/copy-text.ts";
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
    if (await attempt(async () => copyText(typeof text === "string" ? text : await text()))) setCopied(true);
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
