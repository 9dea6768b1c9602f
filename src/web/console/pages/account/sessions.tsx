import { vodbox } from "#web/console/api.ts";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { Table } from "#web/console/components/table.tsx";
import { Time } from "#web/console/components/time.tsx";
import { useAttempt } from "#web/console/hooks/use-attempt.ts";
import { useResource } from "#web/console/hooks/use-resource.ts";
import { useTexts } from "#web/console/texts/texts.tsx";
import { texts } from "./texts.ts";

/** Where the person is signed in. */
export function Sessions() {
  const t = useTexts(texts);
  const { failure, attempt } = useAttempt();
  const sessions = useResource(() => vodbox.listMySessions(), []);
  const end = async (work: () => Promise<unknown>) => {
    await attempt(work);
    sessions.reload();
  };
  return (
    <section aria-labelledby="sessions">
      <div class="page-head">
        <h2 id="sessions">{t("sessions")}</h2>
        {(sessions.value?.length ?? 0) > 1 && (
          <button type="button" onClick={() => end(() => vodbox.endMyOtherSessions())}>
            {t("endOthers")}
          </button>
        )}
      </div>
      <ErrorNotice error={failure ?? sessions.error} />
      <Table
        items={sessions.value ?? []}
        columns={[
          { title: t("browser"), cell: ({ user_agent }) => user_agent ?? t("unknown") },
          { title: t("address"), cell: ({ address }) => address ?? t("unknown") },
          { title: t("created"), cell: ({ created_at }) => <Time at={created_at} /> },
          {
            title: t("actions"),
            cell: ({ id, is_current }) =>
              is_current ? (
                t("thisSession")
              ) : (
                <button type="button" onClick={() => end(() => vodbox.endMySession({ id }))}>
                  {t("endSession")}
                </button>
              ),
          },
        ]}
      />
    </section>
  );
}
