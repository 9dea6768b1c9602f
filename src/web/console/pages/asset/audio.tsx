import { useEffect, useId, useRef, useState } from "preact/hooks";
import { AUDIO_TRACK_ROLE } from "#build/client/enums.ts";
import { vodbox } from "#web/console/api.ts";
import { Badge } from "#web/console/components/badge.tsx";
import { ConfirmDialog, Dialog } from "#web/console/components/dialog.tsx";
import { Field, Form, Select } from "#web/console/components/form.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { Table } from "#web/console/components/table.tsx";
import { useAttempt } from "#web/console/hooks/use-attempt.ts";
import { useResource } from "#web/console/hooks/use-resource.ts";
import { useSession } from "#web/console/session.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { AudioTrack } from "#web/console/types.ts";
import { audioTexts } from "./audio-texts.ts";
import type { SectionProps } from "./section.ts";
import { texts } from "./texts.ts";

const ROLE_TEXTS = {
  ...({ main: "roleMain", alternate: "roleAlternate", commentary: "roleCommentary" } as const),
  ...({ dub: "roleDub", description: "roleDescription" } as const),
} as const;
const STATUS_TEXTS = { processing: "audioProcessing", ready: "audioReady", failed: "audioFailed" } as const;
/** An upload of a large file takes long. */
const UPLOAD_MS = 6 * 3_600_000;
/** While a track is encoded. */
const RELOAD_MS = 2000;

/** The audio tracks of a video: add, label, choose and remove them. */
export default function Audio({ asset: { id, playback_status }, reloadPlayer }: SectionProps) {
  const t = useTexts(texts);
  const own = useTexts(audioTexts);
  const { may } = useSession();
  const list = useResource(() => vodbox.listAudioTracks({ id }), [id]);
  const { failure, attempt } = useAttempt();
  const [edited, setEdited] = useState<AudioTrack | "new" | null>(null);
  const [removed, setRemoved] = useState<AudioTrack | null>(null);
  const mayWrite = may("assets:write") && playback_status === "ready";
  const tracks = list.value ?? [];
  const isEncoding = tracks.some(({ status }) => status === "processing");
  const wasEncoding = useRef(false);
  useEffect(() => {
    if (wasEncoding.current && !isEncoding) reloadPlayer();
    wasEncoding.current = isEncoding;
    if (!isEncoding) return;
    const timer = setInterval(list.reload, RELOAD_MS);
    return () => clearInterval(timer);
  }, [isEncoding]);
  const change = async (work: () => Promise<unknown>) => {
    await attempt(work);
    list.reload();
    reloadPlayer();
  };
  return (
    <section aria-labelledby="audio-tracks">
      <div class="row share-head">
        <h2 id="audio-tracks">{own("audioTracks")}</h2>
        {mayWrite && (
          <button type="button" class="primary" onClick={() => setEdited("new")}>
            {own("addAudio")}
          </button>
        )}
      </div>
      <ErrorNotice error={failure ?? list.error} />
      {tracks.length === 0 ? (
        <p class="empty">{own("noAudio")}</p>
      ) : (
        <Table
          items={tracks}
          columns={[
            { title: t("name"), cell: ({ name }) => <span class="breaking">{name}</span> },
            { title: t("subtitleLanguage"), cell: ({ language }) => language ?? "–" },
            { title: own("audioRole"), cell: ({ role }) => own(ROLE_TEXTS[role]) },
            {
              title: t("status"),
              cell: ({ status, error, is_default }) => (
                <span class="row">
                  <Badge state={status} text={own(STATUS_TEXTS[status])} />
                  {is_default && <span>{t("isDefault")}</span>}
                  {error && <span>{error.message}</span>}
                </span>
              ),
            },
            {
              title: t("actions"),
              cell: (track) =>
                mayWrite && (
                  <span class="row">
                    <button type="button" onClick={() => setEdited(track)}>
                      {t("edit")}
                    </button>
                    {!track.is_default && track.status === "ready" && (
                      <button
                        type="button"
                        onClick={() =>
                          change(() => vodbox.updateAudioTrack({ id, track_id: track.id, body: { is_default: true } }))
                        }
                      >
                        {t("makeDefault")}
                      </button>
                    )}
                    <button type="button" onClick={() => setRemoved(track)}>
                      {own("removeAudio")}
                    </button>
                  </span>
                ),
            },
          ]}
        />
      )}
      {edited && (
        <TrackDialog
          assetId={id}
          track={edited === "new" ? null : edited}
          onDone={() => {
            setEdited(null);
            list.reload();
            if (edited !== "new") reloadPlayer();
          }}
          onClose={() => setEdited(null)}
        />
      )}
      {removed && (
        <ConfirmDialog
          text={own("removeAudioQuestion", { name: removed.name })}
          onConfirm={async () => {
            setRemoved(null);
            await change(() => vodbox.deleteAudioTrack({ id, track_id: removed.id }));
          }}
          onClose={() => setRemoved(null)}
        />
      )}
    </section>
  );
}

type DialogProps = { assetId: number; track: AudioTrack | null; onDone(): void; onClose(): void };

function TrackDialog({ assetId: id, track, onDone, onClose }: DialogProps) {
  const t = useTexts(texts);
  const own = useTexts(audioTexts);
  const fileId = useId();
  const input = useRef<HTMLInputElement>(null);
  const send = async ({ language = "", name = "", role = "alternate" }: Record<string, string>) => {
    const fields = { language, name, role: role as AudioTrack["role"] };
    if (track) await vodbox.updateAudioTrack({ id, track_id: track.id, body: fields });
    else {
      const file = input.current?.files?.[0];
      if (!file) return;
      await vodbox.createAudioTrack({ id, body: { ...fields, file } }, { timeoutMs: UPLOAD_MS });
    }
    onDone();
  };
  return (
    <Dialog title={track ? track.name : own("addAudio")} onClose={onClose}>
      <Form submit={track ? t("save") : t("upload")} onSubmit={send}>
        {!track && (
          <div class="field">
            <label for={fileId}>{own("audioFile")}</label>
            <input id={fileId} ref={input} type="file" accept="audio/*,video/*" required />
          </div>
        )}
        <Field label={t("name")} name="name" value={track?.name ?? ""} required />
        <Field
          label={t("subtitleLanguage")}
          name="language"
          value={track?.language ?? ""}
          hint={t("languageHint")}
          required
        />
        <Select
          label={own("audioRole")}
          name="role"
          value={track?.role ?? "alternate"}
          options={AUDIO_TRACK_ROLE.map((role) => [role, own(ROLE_TEXTS[role])] as const)}
        />
      </Form>
    </Dialog>
  );
}
