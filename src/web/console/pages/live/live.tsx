import { Radio } from "lucide";
import { useState } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { vodbox } from "#web/console/api.ts";
import { BASE, pagePath } from "#web/console/base.ts";
import { ConfirmDialog, Dialog } from "#web/console/components/dialog.tsx";
import { Field, Form } from "#web/console/components/form.tsx";
import { ListView } from "#web/console/components/list-view.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { PageHead } from "#web/console/components/page-head.tsx";
import { ShownOnce } from "#web/console/components/shown-once.tsx";
import { Table } from "#web/console/components/table.tsx";
import { TenantSelect } from "#web/console/components/tenant-select.tsx";
import { Time } from "#web/console/components/time.tsx";
import { useList } from "#web/console/hooks/use-list.ts";
import { useRefresh } from "#web/console/hooks/use-refresh.ts";
import { useSession } from "#web/console/session.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { LiveChannel } from "#web/console/types.ts";
import { languages } from "./languages.ts";
import { ChannelStatus, Signal } from "./signal.tsx";
import { texts } from "./texts.ts";

const REFRESH_MS = 5000;

type Question = { channel: LiveChannel; action: "rotate" | "delete" };

/** Channels for live streams, and what is published to them. */
export default function Live() {
  const t = useTexts(texts);
  const { may, session } = useSession();
  const { route } = useLocation();
  const [isNew, setNew] = useState(false);
  const [key, setKey] = useState<string | null>(null);
  const [question, setQuestion] = useState<Question | null>(null);
  const [failure, setFailure] = useState<unknown>(null);
  const list = useList(() => vodbox.listChannels(), []);
  const { reload } = list;
  useRefresh(reload, REFRESH_MS);
  const create = async ({ channel = "", name, publisher, captions = "", tenant_id }: Record<string, string>) => {
    const tenant = session.tenant_id ?? Number(tenant_id);
    const body = {
      channel,
      ...(name && { name }),
      publisher: publisher || null,
      captions: languages(captions),
      tenant_id: tenant,
    };
    setKey((await vodbox.createChannel({ body })).stream_key ?? null);
    setNew(false);
    reload();
  };
  const confirmed = async ({ channel: { id }, action }: Question) => {
    setQuestion(null);
    setFailure(null);
    try {
      if (action === "delete") await vodbox.revokeChannel({ id });
      else setKey((await vodbox.rotateStreamKey({ id })).stream_key ?? null);
    } catch (thrown) {
      setFailure(thrown);
    }
    reload();
  };
  return (
    <>
      <PageHead title={t("live")}>
        {may("assets:write") && (
          <button type="button" class="primary" onClick={() => setNew(true)}>
            {t("newChannel")}
          </button>
        )}
      </PageHead>
      {key !== null && <ShownOnce text={t("keyShownOnce")} secret={key} />}
      <ErrorNotice error={failure} />
      <ListView
        list={list}
        empty={t("noChannels")}
        icon={Radio}
        action={
          may("assets:write") && (
            <button type="button" class="primary" onClick={() => setNew(true)}>
              {t("firstChannel")}
            </button>
          )
        }
      >
        {(items) => (
          <Table
            items={items}
            columns={[
              { title: t("name"), cell: ({ id, name }) => <a href={pagePath(`live/${id}`)}>{name}</a> },
              { title: t("path"), cell: ({ path }) => <code>{path}</code> },
              { title: t("status"), cell: (channel) => <ChannelStatus channel={channel} /> },
              { title: t("signal"), cell: ({ health }) => health && <Signal health={health} /> },
              { title: t("created"), cell: ({ created_at }) => <Time at={created_at} /> },
              {
                title: t("actions"),
                cell: (channel) =>
                  may("assets:write") &&
                  channel.revoked_at === null && (
                    <span class="row">
                      {channel.status === "live" && channel.playback_policy === "public" && (
                        <a href={`${BASE}/watch/live/${channel.channel}`} target="_blank" rel="noreferrer">
                          {t("openStream")}
                        </a>
                      )}
                      <button type="button" onClick={() => route(pagePath(`live/${channel.id}/studio`))}>
                        {t("goLive")}
                      </button>
                      <button type="button" onClick={() => setQuestion({ channel, action: "rotate" })}>
                        {t("rotate")}
                      </button>
                      <button type="button" onClick={() => setQuestion({ channel, action: "delete" })}>
                        {t("delete")}
                      </button>
                    </span>
                  ),
              },
            ]}
          />
        )}
      </ListView>
      {isNew && (
        <Dialog title={t("newChannel")} onClose={() => setNew(false)}>
          <Form submit={t("create")} onSubmit={create}>
            <Field label={t("channel")} name="channel" required hint={t("channelHint")} />
            <Field label={t("name")} name="name" />
            <Field label={t("publisher")} name="publisher" hint={t("publisherHint")} />
            <Field label={t("captions")} name="captions" hint={t("captionsHint")} />
            {session.tenant_id === null && <TenantSelect />}
          </Form>
        </Dialog>
      )}
      {question && (
        <ConfirmDialog
          text={question.action === "delete" ? t("deleteQuestion") : t("rotateQuestion")}
          onConfirm={() => confirmed(question)}
          onClose={() => setQuestion(null)}
        />
      )}
    </>
  );
}
