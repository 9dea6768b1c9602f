import { useState } from "preact/hooks";
import { useLocation, useRoute } from "preact-iso/router";
import type { Result } from "#clients/typescript/types.ts";
import { vodbox } from "#web/console/api.ts";
import { pagePath } from "#web/console/base.ts";
import { ConfirmDialog, Dialog } from "#web/console/components/dialog.tsx";
import { Form } from "#web/console/components/form.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { PageHead } from "#web/console/components/page-head.tsx";
import { ShownOnce } from "#web/console/components/shown-once.tsx";
import { Time } from "#web/console/components/time.tsx";
import { useToast } from "#web/console/components/toast.tsx";
import { dateTime } from "#web/console/format.ts";
import { useResource } from "#web/console/hooks/use-resource.ts";
import { useSession } from "#web/console/session.tsx";
import { useLanguage, useTexts } from "#web/console/texts/texts.tsx";
import type { WebhookEndpoint } from "#web/console/types.ts";
import { Deliveries } from "./deliveries.tsx";
import { EndpointFields, endpointOf } from "./endpoint-fields.tsx";
import { EndpointState } from "./endpoint-state.tsx";
import { texts } from "./texts.ts";

/** One endpoint, with what was sent to it. */
export default function Webhook() {
  const t = useTexts(texts);
  const { params } = useRoute();
  const id = Number(params.id);
  const { value, error, reload, set } = useResource(() => vodbox.getWebhook({ id }), [id]);
  if (error) return <ErrorNotice error={error} onRetry={reload} />;
  if (!value) return <p>{t("loading")}</p>;
  return <Endpoint endpoint={value} onChange={set} />;
}

type Props = { endpoint: WebhookEndpoint; onChange(endpoint: WebhookEndpoint): void };

function Endpoint({ endpoint, onChange }: Props) {
  const t = useTexts(texts);
  const { language } = useLanguage();
  const { id } = endpoint;
  const { may } = useSession();
  const { route } = useLocation();
  const toast = useToast();
  const [question, setQuestion] = useState<"delete" | "rotate" | null>(null);
  const [isEditing, setEditing] = useState(false);
  const [rotated, setRotated] = useState<Result<"rotateWebhookSecret"> | null>(null);
  const [sent, setSent] = useState(0);
  const [failure, setFailure] = useState<unknown>(null);
  const trying = (work: () => Promise<unknown>) => async () => {
    setQuestion(null);
    setFailure(null);
    await work().catch(setFailure);
  };
  const test = trying(async () => {
    await vodbox.testWebhook({ id });
    toast(t("testSent"));
    setSent((count) => count + 1);
  });
  const toggle = trying(async () =>
    onChange(await vodbox.setWebhookActive({ id, body: { active: !endpoint.active } })),
  );
  const rotate = trying(async () => setRotated(await vodbox.rotateWebhookSecret({ id })));
  const save = async (values: Record<string, string>) => {
    onChange(await vodbox.updateWebhook({ id, body: endpointOf(values, endpoint.format) }));
    setEditing(false);
    toast(t("saved"));
  };
  const removeIt = trying(async () => {
    await vodbox.deleteWebhook({ id });
    toast(t("deleted"));
    route(pagePath("webhooks"));
  });
  return (
    <>
      <PageHead title={endpoint.url} back="webhooks">
        {may("webhooks:write") && (
          <>
            <button type="button" class="primary" onClick={test}>
              {t("sendTest")}
            </button>
            <button type="button" onClick={toggle}>
              {endpoint.active ? t("pause") : t("resume")}
            </button>
            <button type="button" onClick={() => setEditing(true)}>
              {t("edit")}
            </button>
            <button type="button" onClick={() => setQuestion("rotate")}>
              {t("rotate")}
            </button>
            <button type="button" class="danger" onClick={() => setQuestion("delete")}>
              {t("delete")}
            </button>
          </>
        )}
      </PageHead>
      <ErrorNotice error={failure} />
      {rotated && (
        <>
          <ShownOnce text={t("secretShownOnce")} secret={rotated.secret} />
          <p>{t("oldSecretUntil", { time: dateTime(rotated.previous_secret_expires_at, language) })}</p>
        </>
      )}
      <dl class="facts">
        <dt>{t("status")}</dt>
        <dd>
          <EndpointState endpoint={endpoint} />
        </dd>
        {endpoint.description && (
          <>
            <dt>{t("description")}</dt>
            <dd>{endpoint.description}</dd>
          </>
        )}
        <dt>{t("events")}</dt>
        <dd>{endpoint.event_types.join(", ") || t("allEvents")}</dd>
        <dt>{t("failures")}</dt>
        <dd>{endpoint.failure_count}</dd>
        <dt>{t("lastDelivery")}</dt>
        <dd>
          <Time at={endpoint.last_delivery_at} />
        </dd>
      </dl>
      <Deliveries endpointId={endpoint.id} canResend={may("webhooks:write")} sent={sent} />
      {isEditing && (
        <Dialog title={t("edit")} onClose={() => setEditing(false)}>
          <Form submit={t("save")} onSubmit={save}>
            <EndpointFields endpoint={endpoint} />
          </Form>
        </Dialog>
      )}
      {question && (
        <ConfirmDialog
          text={question === "delete" ? t("deleteQuestion") : t("rotateQuestion")}
          onConfirm={question === "delete" ? removeIt : rotate}
          onClose={() => setQuestion(null)}
        />
      )}
    </>
  );
}
