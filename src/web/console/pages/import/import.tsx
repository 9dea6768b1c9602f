import { useId, useState } from "preact/hooks";
import { IMPORT_SOURCE_NAMES, type ImportSourceName } from "#model/import-sources.ts";
import { BASE } from "#web/console/base.ts";
import { CopyButton } from "#web/console/components/copy-button.tsx";
import { PageHead } from "#web/console/components/page-head.tsx";
import { useSession } from "#web/console/session.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import { Runs } from "./runs.tsx";
import { commandsFor, nameOf } from "./sources.ts";
import { texts } from "./texts.ts";

/** Moving in from elsewhere: the command for a source, and what the imports have reported. */
export default function Import() {
  const t = useTexts(texts);
  const { may } = useSession();
  return (
    <>
      <PageHead title={t("import")} />
      {may("assets:write") && <Start />}
      <Runs />
    </>
  );
}

function Start() {
  const t = useTexts(texts);
  const id = useId();
  const [source, setSource] = useState<ImportSourceName>("mux");
  const commands = commandsFor(source, location.origin + BASE);
  return (
    <section class="card-section" aria-label={t("command")}>
      <p>{t("intro")}</p>
      <div class="field">
        <label for={id}>{t("from")}</label>
        <select
          id={id}
          value={source}
          onChange={({ currentTarget }) => setSource(currentTarget.value as ImportSourceName)}
        >
          {IMPORT_SOURCE_NAMES.map((one) => (
            <option key={one} value={one}>
              {nameOf(one, t)}
            </option>
          ))}
        </select>
      </div>
      <pre class="commands">
        <code>{commands}</code>
      </pre>
      <CopyButton text={commands} />
      <p class="fine">
        {t("planHint")} {t("commandHint")} <a href={`${BASE}/docs/guide/import.html`}>{t("guideLink")}</a>
      </p>
    </section>
  );
}
