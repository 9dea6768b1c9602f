import { Badge } from "#web/console/components/badge.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { WebhookEndpoint } from "#web/console/types.ts";
import { texts } from "./texts.ts";

export function EndpointState({ endpoint }: { endpoint: WebhookEndpoint }) {
  const t = useTexts(texts);
  if (endpoint.active) return <Badge state="ready" text={t("active")} />;
  if (endpoint.disabled_reason === null) return <Badge state="queued" text={t("paused")} />;
  return <Badge state="errored" text={`${t("disabled")}: ${endpoint.disabled_reason}`} />;
}
