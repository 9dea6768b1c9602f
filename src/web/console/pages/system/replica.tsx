import { useEffect } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { useResource } from "#web/console/hooks/use-resource.ts";
import { useTexts } from "#web/console/texts/texts.tsx";
import { texts } from "./texts.ts";

const REFRESH_MS = 5000;

/** The lag of the continuous backup, as readiness reports it. */
export function Replica() {
  const t = useTexts(texts);
  const { value, reload } = useResource(() => vodbox.getReadiness(), []);
  const replica = value?.replica;
  const hasReplica = replica !== undefined;
  useEffect(() => {
    if (!hasReplica) return;
    const timer = setInterval(reload, REFRESH_MS);
    return () => clearInterval(timer);
  }, [hasReplica, reload]);
  if (!value) return null;
  return (
    <p>
      {t("replica")}: {replica ? (replica.error ?? t("lag", { seconds: replica.lag_seconds })) : t("replicaNone")}
    </p>
  );
}
