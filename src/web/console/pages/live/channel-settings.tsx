import { vodbox } from "#web/console/api.ts";
import { Checkbox, Field, Form, Select } from "#web/console/components/form.tsx";
import { useToast } from "#web/console/components/toast.tsx";
import { useResource } from "#web/console/hooks/use-resource.ts";
import { localTime } from "#web/console/local-time.ts";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { LiveChannel } from "#web/console/types.ts";
import { languages } from "./languages.ts";
import { texts } from "./texts.ts";

type Props = { channel: LiveChannel; onChange(channel: LiveChannel): void };

/** Everything of a channel that can be changed. A running stream keeps what it began with. */
export function ChannelSettings({ channel, onChange }: Props) {
  const t = useTexts(texts);
  const toast = useToast();
  const profiles = useResource(async () => await vodbox.listEncodingProfiles({ limit: 500 }), []);
  const startsAt = localTime(channel.starts_at);
  const save = async (values: Record<string, string>) => {
    const {
      name = "",
      playback_policy,
      publisher,
      dvr_seconds,
      encoding_profile,
      captions = "",
      captions_live = "",
    } = values;
    const changed = await vodbox.updateChannel({
      id: channel.id,
      body: {
        name,
        playback_policy: playback_policy as LiveChannel["playback_policy"],
        publisher: publisher?.trim() || null,
        // The field has no seconds.
        ...(values.starts_at !== startsAt && {
          starts_at: values.starts_at ? new Date(values.starts_at).toISOString() : null,
        }),
        dvr_seconds: Number(dvr_seconds),
        captions: languages(captions),
        captions_live: languages(captions_live),
        record: values.record === "on",
        low_latency: values.low_latency === "on",
        takeover: values.takeover === "on",
        // Not before the profiles are loaded, which the field shows.
        ...(profiles.value && { encoding_profile: encoding_profile || null }),
      },
    });
    onChange(changed);
    toast(t("saved"));
  };
  return (
    <details class="card-section">
      <summary>
        <h2>{t("channelSettings")}</h2>
      </summary>
      <Form submit={t("save")} onSubmit={save} asksBeforeLeaving>
        <Field label={t("name")} name="name" value={channel.name} required />
        <Select
          label={t("policy")}
          name="playback_policy"
          value={channel.playback_policy}
          options={[
            ["public", t("everyone")],
            ["signed", t("withToken")],
          ]}
        />
        <Field label={t("startsAt")} name="starts_at" type="datetime-local" value={startsAt} hint={t("startsAtHint")} />
        <Checkbox label={t("record")} name="record" isChecked={channel.record} />
        <Checkbox label={t("lowLatency")} name="low_latency" isChecked={channel.low_latency} />
        <Checkbox label={t("takeover")} name="takeover" isChecked={channel.takeover} />
        <Field label={t("dvr")} name="dvr_seconds" type="number" min="0" value={String(channel.dvr_seconds)} required />
        {profiles.value && (
          <Select
            label={t("profile")}
            name="encoding_profile"
            value={channel.encoding_profile ?? ""}
            options={[["", t("noProfile")], ...profiles.value.map(({ name }): [string, string] => [name, name])]}
          />
        )}
        <Field label={t("captions")} name="captions" value={channel.captions.join(", ")} hint={t("captionsHint")} />
        <Field
          label={t("captionsLive")}
          name="captions_live"
          value={channel.captions_live.join(", ")}
          hint={t("captionsHint")}
        />
        <Field label={t("publisher")} name="publisher" value={channel.publisher ?? ""} hint={t("publisherHint")} />
      </Form>
    </details>
  );
}
