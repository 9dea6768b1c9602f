import { useTexts } from "../../texts/texts.tsx";
import type { Asset } from "../../types.ts";
import { texts } from "./texts.ts";

/** What of the source the media do not contain. */
export function Warnings({ warnings }: Pick<Asset, "warnings">) {
  const t = useTexts(texts);
  if (warnings.length === 0) return null;
  return (
    <div class="notice" role="status">
      <p>
        <strong>{t("incomplete")}</strong>
      </p>
      <ul>
        {warnings.map(({ code, message }, at) => (
          <li key={at}>
            {message} <code>{code}</code>
          </li>
        ))}
      </ul>
    </div>
  );
}
