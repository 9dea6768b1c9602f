import { useTexts } from "#web/console/texts/texts.tsx";
import type { Asset } from "#web/console/types.ts";
import { texts } from "./texts.ts";

/** What differs from the source, or from what was requested. */
export function Warnings({ warnings }: Pick<Asset, "warnings">) {
  const t = useTexts(texts);
  if (warnings.length === 0) return null;
  return (
    <div class="notice" role="status">
      <p>
        <strong>{t("warnings")}</strong>
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
