import { vodbox } from "#web/console/api.ts";
import { Badge } from "#web/console/components/badge.tsx";
import { Dialog } from "#web/console/components/dialog.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { Time } from "#web/console/components/time.tsx";
import { useResource } from "#web/console/hooks/use-resource.ts";
import { useTexts } from "#web/console/texts/texts.tsx";
import { COLORS } from "./delivery-colors.ts";
import { texts } from "./texts.ts";

type Props = { endpointId: number; deliveryId: string; onClose(): void };

/** JSON with line breaks; other text, and JSON that was cut, as it is. */
function pretty(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** What was sent, what came back, and when. */
export function DeliveryDialog({ endpointId, deliveryId, onClose }: Props) {
  const t = useTexts(texts);
  const { value, error, reload } = useResource(
    () => vodbox.getDelivery({ id: endpointId, delivery_id: deliveryId }),
    [endpointId, deliveryId],
  );
  return (
    <Dialog title={t("delivery", { id: deliveryId })} onClose={onClose}>
      <ErrorNotice error={error} onRetry={reload} />
      {!value && !error && <p>{t("loading")}</p>}
      {value && (
        <>
          <dl class="facts">
            <dt>{t("event")}</dt>
            <dd>
              <code>{value.event}</code> <code class="fine">{value.event_id}</code>
            </dd>
            <dt>{t("status")}</dt>
            <dd>
              <Badge state={COLORS[value.status]} text={t(value.status)} />
            </dd>
            <dt>{t("attempts")}</dt>
            <dd>{value.attempts}</dd>
            <dt>{t("firstAttempt")}</dt>
            <dd>
              <Time at={value.created_at} />
            </dd>
            <dt>{t("lastAttempt")}</dt>
            <dd>
              <Time at={value.last_attempt_at} />
            </dd>
            {value.next_attempt_at && (
              <>
                <dt>{t("next")}</dt>
                <dd>
                  <Time at={value.next_attempt_at} />
                </dd>
              </>
            )}
          </dl>
          <h3>{t("request")}</h3>
          <p>
            <code>
              {value.request.method} {value.request.url}
            </code>
          </p>
          <Scrolling label={`${t("request")}: ${t("headers")}`}>
            {Object.entries(value.request.headers)
              .map(([name, text]) => `${name}: ${text}`)
              .join("\n")}
          </Scrolling>
          <p class="fine">{t("signaturesHint")}</p>
          <Scrolling label={`${t("request")}: ${t("body")}`}>{pretty(value.request.body)}</Scrolling>
          <h3>{t("response")}</h3>
          <p>
            {value.response_status ?? value.error?.message ?? "–"}
            {value.duration_ms !== null && <span class="fine"> {value.duration_ms} ms</span>}
          </p>
          {value.response_status !== null && (
            <Scrolling label={`${t("response")}: ${t("body")}`}>
              {value.response_body ? pretty(value.response_body) : t("emptyBody")}
            </Scrolling>
          )}
        </>
      )}
      <div class="row end">
        <button type="button" onClick={onClose}>
          {t("close")}
        </button>
      </div>
    </Dialog>
  );
}

const Scrolling = ({ label, children }: { label: string; children: string }) => (
  // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard
  <section class="log-tail" tabIndex={0} aria-label={label}>
    <pre>{children}</pre>
  </section>
);
