import { useEffect, useState } from "preact/hooks";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { Progress } from "#web/console/components/progress.tsx";
import { bytes } from "#web/console/format.ts";
import { useLanguage, useTexts } from "#web/console/texts/texts.tsx";
import { texts } from "./texts.ts";
import { type Transfer, transfers } from "./transfers.ts";
import { discard, isSameFile, listUnfinished, type Unfinished } from "./unfinished.ts";

type Props = {
  owner: string;
  list: Transfer[];
  /** The name of the file that was wanted when another one was chosen. */
  other: string | null;
  onChoose(one: Unfinished): void;
};

/** Uploads that a reload, a crash or another day has interrupted. */
export function UnfinishedList({ owner, list, other, onChoose }: Props) {
  const t = useTexts(texts);
  const { language } = useLanguage();
  const [found, setFound] = useState<Unfinished[]>([]);
  const [error, setError] = useState<unknown>(null);
  const load = () =>
    void listUnfinished(owner, transfers.isRunning).then(
      (all) => {
        setFound(all);
        setError(null);
      },
      (thrown) => setError(thrown),
    );
  useEffect(load, [owner]);
  const shown = found.filter(({ key }) => !list.some(({ file }) => isSameFile(owner, key, file)));
  if (shown.length === 0) return <ErrorNotice error={error} onRetry={load} />;
  const remove = async (one: Unfinished) => {
    setError(null);
    try {
      await discard(one);
      setFound((known) => known.filter(({ key }) => key !== one.key));
    } catch (thrown) {
      setError(thrown);
    }
  };
  return (
    <section class="unfinished" aria-labelledby="unfinished">
      <h2 id="unfinished">{t("unfinished")}</h2>
      <p class="fine">{t("unfinishedHint")}</p>
      <ErrorNotice error={error} onRetry={load} />
      {other !== null && (
        <div class="notice error" role="alert">
          <p>{t("otherFile", { name: other })}</p>
        </div>
      )}
      <ul class="transfers">
        {shown.map((one) => (
          <li key={one.key} class="transfer">
            <div class="row">
              <strong class="grow">{one.name}</strong>
              <button type="button" onClick={() => onChoose(one)}>
                {t("chooseAgain")}
              </button>
              <button type="button" class="quiet" onClick={() => remove(one)}>
                {t("discard")}
              </button>
            </div>
            <Progress value={one.sent / Math.max(1, one.size)} label={`${one.name}: ${t("uploading")}`} />
            <p class="fine">
              {bytes(one.sent, language)} / {bytes(one.size, language)}
            </p>
          </li>
        ))}
      </ul>
    </section>
  );
}
