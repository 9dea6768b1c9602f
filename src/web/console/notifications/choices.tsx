import { vodbox } from "../api.ts";
import { ErrorNotice } from "../components/notice.tsx";
import { useAttempt } from "../hooks/use-attempt.ts";
import { useResource } from "../hooks/use-resource.ts";
import { useTexts } from "../texts/texts.tsx";
import type { Notification } from "../types.ts";
import { texts } from "./texts.ts";

type Kind = Notification["kind"];

/** What the person who is signed in is notified of, and where. A choice is stored at once. */
export function NotificationChoices() {
  const t = useTexts(texts);
  const settings = useResource(() => vodbox.getMyNotificationSettings({}), []);
  const { failure, attempt } = useAttempt();
  const choose = (kind: Kind, change: { console?: boolean; mail?: boolean }) =>
    attempt(async () => settings.set(await vodbox.updateMyNotificationSettings({ body: { [kind]: change } })));
  if (!settings.value) return <ErrorNotice error={settings.error} onRetry={settings.reload} />;
  const { kinds, mail_available } = settings.value;
  const places = [
    { place: "console", title: t("inConsole") },
    { place: "mail", title: t("byMail") },
  ] as const;
  return (
    <section aria-labelledby="notifications">
      <h2 id="notifications">{t("notifications")}</h2>
      <p class="fine">{t("chooseText")}</p>
      <table class="choices-table">
        <thead>
          <tr>
            <th scope="col">{t("kind")}</th>
            {places.map(({ place, title }) => (
              <th key={place} scope="col">
                {title}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {(Object.entries(kinds) as [Kind, { console: boolean; mail: boolean }][]).map(([kind, chosen]) => (
            <tr key={kind}>
              <th scope="row">{t(kind)}</th>
              {places.map(({ place, title }) => (
                <td key={place} data-label={title}>
                  <input
                    type="checkbox"
                    aria-label={`${t(kind)}: ${title}`}
                    checked={chosen[place]}
                    disabled={place === "mail" && !mail_available}
                    onChange={({ currentTarget }) => void choose(kind, { [place]: currentTarget.checked })}
                  />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {!mail_available && <p class="fine">{t("noMail")}</p>}
      <ErrorNotice error={failure} />
    </section>
  );
}
