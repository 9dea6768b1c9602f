import { useState } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { Table } from "#web/console/components/table.tsx";
import { useResource } from "#web/console/hooks/use-resource.ts";
import { useTexts } from "#web/console/texts/texts.tsx";
import { texts } from "./texts.ts";

/** The settings of the server, with where each value comes from. */
export function Settings() {
  const t = useTexts(texts);
  const { value, error, reload } = useResource(() => vodbox.listSettings(), []);
  const [words, setWords] = useState("");
  const [onlySet, setOnlySet] = useState(true);
  const found = (value?.settings ?? [])
    .filter(({ origin }) => !onlySet || origin !== "default")
    .filter(({ setting, about }) => `${setting} ${about}`.toLowerCase().includes(words.trim().toLowerCase()));
  return (
    <section aria-labelledby="settings">
      <h2 id="settings">{t("settings")}</h2>
      <ErrorNotice error={error} onRetry={reload} />
      {value && (
        <>
          <p class="fine">
            {value.file === null ? t("noFile") : `${t("settingsFile")}: ${value.file}`}
            {" · "}
            {t("settingsHint")}
          </p>
          {value.warnings.map((warning) => (
            <p key={warning} class="notice">
              {warning}
            </p>
          ))}
          <div class="row filters">
            <label class="grow">
              <span class="unseen">{t("findSetting")}</span>
              <input
                type="search"
                placeholder={t("findSetting")}
                onInput={({ currentTarget }) => setWords(currentTarget.value)}
              />
            </label>
            <label class="check">
              <input
                type="checkbox"
                checked={onlySet}
                onChange={({ currentTarget }) => setOnlySet(currentTarget.checked)}
              />{" "}
              {t("onlySet")}
            </label>
          </div>
          {found.length === 0 ? (
            <p class="empty">{t("nothingFound")}</p>
          ) : (
            <Table
              items={found.map((one) => ({ id: one.setting, ...one }))}
              columns={[
                {
                  title: t("setting"),
                  cell: ({ setting, about }) => (
                    <span>
                      <code>{`VODBOX_${setting.toUpperCase()}`}</code> <span class="fine">{about}</span>
                    </span>
                  ),
                },
                { title: t("settingValue"), cell: ({ value: text }) => (text === null ? "–" : <code>{text}</code>) },
                { title: t("origin"), cell: ({ origin, value: text }) => (text === null ? "–" : t(ORIGINS[origin])) },
              ]}
            />
          )}
        </>
      )}
    </section>
  );
}

const ORIGINS = {
  flag: "originFlag",
  environment: "originEnvironment",
  file: "originFile",
  default: "originDefault",
  "data directory": "originData",
} as const;
