import { useState } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { pagePath } from "#web/console/base.ts";
import { Field, Form, Select } from "#web/console/components/form.tsx";
import { duration } from "#web/console/format.ts";
import { useSession } from "#web/console/session.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Asset } from "#web/console/types.ts";
import type { SectionProps } from "./section.ts";
import { texts } from "./texts.ts";
import { Trim } from "./trim.tsx";

/** Cuts a clip out of a video: its start and end are typed, or marked in the player. */
export default function Clip({ asset, playback, player, onChange }: SectionProps) {
  const t = useTexts(texts);
  const { may } = useSession();
  const [marked, setMarked] = useState({ start: "0", end: String(asset.duration_seconds), version: 0 });
  const [clip, setClip] = useState<Asset | null>(null);
  const mark = (edge: "start" | "end") =>
    setMarked(({ version, ...edges }) => ({ ...edges, [edge]: player.seconds.toFixed(3), version: version + 1 }));
  const type = (edge: "start" | "end") => (text: string) => setMarked((edges) => ({ ...edges, [edge]: text }));
  if (!may("assets:write") || asset.provider !== "managed" || !playback) return <p class="fine">{t("noClips")}</p>;
  const create = async ({ title = "", start, end, mode }: Record<string, string>) => {
    const exactly = mode === "exact" ? ("exact" as const) : ("instant" as const);
    const body = { title, start_seconds: Number(start), end_seconds: Number(end), mode: exactly };
    setClip(await vodbox.createClip({ id: asset.id, body }));
  };
  const times = { type: "number", min: "0", max: String(asset.duration_seconds), step: "any", required: true } as const;
  return (
    <div class="halves">
      <section>
        <p class="fine">{t("clipHint")}</p>
        <div class="row">
          <button type="button" onClick={() => mark("start")}>
            {t("markIn")}
          </button>
          <button type="button" onClick={() => mark("end")}>
            {t("markOut")}
          </button>
        </div>
        <Form submit={t("createClip")} onSubmit={create}>
          <Field label={t("title")} name="title" value={asset.title} required />
          <div key={marked.version}>
            <Field label={t("startSeconds")} name="start" value={marked.start} onInput={type("start")} {...times} />
            <Field label={t("endSeconds")} name="end" value={marked.end} onInput={type("end")} {...times} />
          </div>
          <Select
            label={t("clipMode")}
            name="mode"
            options={[
              ["instant", t("instantClip")],
              ["exact", t("exactClip")],
            ]}
          />
        </Form>
      </section>
      <section>
        <div aria-live="polite">
          {clip && (
            <p>
              <a href={pagePath(`assets/${clip.id}`)}>{clip.title}</a>{" "}
              <span class="fine">{t("clipCreated", { length: duration(clip.duration_seconds) })}</span>{" "}
              {clip.playback_status !== "ready" && <span class="fine">{t("clipIsCut")}</span>}
            </p>
          )}
        </div>
        <Trim asset={asset} range={marked} onChange={onChange} />
      </section>
    </div>
  );
}
