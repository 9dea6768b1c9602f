import { CREATE_WEBHOOK_EVENT_TYPES } from "#build/client/enums.ts";
import { Field } from "#web/console/components/form.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { WebhookEndpoint } from "#web/console/types.ts";
import { texts } from "./texts.ts";

/** The fields of a new endpoint, or of `endpoint`. */
export function EndpointFields({ endpoint }: { endpoint?: WebhookEndpoint }) {
  const t = useTexts(texts);
  return (
    <>
      <Field label={t("url")} name="url" type="url" value={endpoint?.url ?? ""} required />
      <Field label={t("description")} name="description" value={endpoint?.description ?? ""} />
      <fieldset>
        <legend>{t("events")}</legend>
        <p class="fine">{t("eventsHint")}</p>
        {CREATE_WEBHOOK_EVENT_TYPES.map((type) => (
          <label key={type} class="check">
            <input type="checkbox" name={type} defaultChecked={endpoint?.event_types.includes(type) ?? false} />{" "}
            <code>{type}</code>
          </label>
        ))}
      </fieldset>
    </>
  );
}

/** The body of a request from the values of these fields. */
export const endpointOf = ({ url = "", description, ...types }: Record<string, string>) => ({
  url,
  description: description || null,
  event_types: CREATE_WEBHOOK_EVENT_TYPES.filter((type) => type in types),
});
