import { VodboxError } from "#clients/typescript/error.ts";
import { useTexts } from "../texts/texts.tsx";

type Props = { error: unknown; onRetry?: () => void };

/** What the API said, with the id of the request for support. */
export function ErrorNotice({ error, onRetry }: Props) {
  const t = useTexts();
  if (error === null || error === undefined) return null;
  const isAnswered = !(error instanceof VodboxError) || error.status > 0;
  const text = !isAnswered ? t("noResponse") : error instanceof Error ? error.message : String(error);
  return (
    <div class="notice error" role="alert">
      <p>{text}</p>
      {error instanceof VodboxError && error.requestId && (
        <p class="fine">
          {t("requestId")} <code>{error.requestId}</code>
        </p>
      )}
      {onRetry && (
        <button type="button" onClick={onRetry}>
          {t("retry")}
        </button>
      )}
    </div>
  );
}
