import { CREATE_WEBHOOK_EVENT_TYPES, LIST_DELIVERIES_EVENT } from "#build/client/enums.ts";
import { Field } from "#web/console/components/form.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { WebhookEndpoint } from "#web/console/types.ts";
import { texts } from "./texts.ts";

type Format = WebhookEndpoint["format"];
/** The events that an endpoint of a format can name: one in Mux's form also those of Mux. */
const namesFor = (format: Format): readonly (typeof CREATE_WEBHOOK_EVENT_TYPES)[number][] =>
  format === "mux" ? CREATE_WEBHOOK_EVENT_TYPES : LIST_DELIVERIES_EVENT;

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
        <div class="long-list">
          {namesFor(endpoint?.format ?? "svc").map((type) => (
            <label key={type} class="check">
              <input type="checkbox" name={type} defaultChecked={endpoint?.event_types.includes(type) ?? false} />{" "}
              <code>{type}</code>
            </label>
          ))}
        </div>
      </fieldset>
    </>
  );
}

/** The body of a request for an endpoint of `format` from the values of these fields. */
export const endpointOf = ({ url = "", description, ...types }: Record<string, string>, format: Format) => ({
  url,
  description: description || null,
  event_types: namesFor(format).filter((type) => type in types),
});
