import { useState } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { Badge } from "#web/console/components/badge.tsx";
import { CopyButton } from "#web/console/components/copy-button.tsx";
import { ConfirmDialog } from "#web/console/components/dialog.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { embedCode } from "#web/console/embed-code.ts";
import { useAttempt } from "#web/console/hooks/use-attempt.ts";
import { useSession } from "#web/console/session.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Collection } from "#web/console/types.ts";
import { texts } from "./texts.ts";

/** The player with its list next to it. */
const PLAYLIST = { width: 960, height: 420 };

type Props = { collection: Collection; onChange(): Promise<void> };

/** The chosen collection: its page for anyone, and what it is passed on with. */
export function CollectionHead({ collection, onChange }: Props) {
  const t = useTexts(texts);
  const { may } = useSession();
  const { failure, attempt } = useAttempt();
  const [isAsking, setAsking] = useState(false);
  const { id, name, public_url, feed_url, embed_url } = collection;
  const isPublic = public_url !== null && feed_url !== null && embed_url !== null;
  const change = async () => {
    setAsking(false);
    await attempt(async () => {
      await vodbox.updateCollection({ id, body: { collection: { is_public: !isPublic } } });
      await onChange();
    });
  };
  return (
    <section class="collection-head" aria-label={name}>
      <div class="row">
        <h2>{name}</h2>
        {isPublic && <Badge state="active" text={t("published")} />}
        <span class="grow" />
        {may("assets:write") && (
          <button type="button" onClick={() => setAsking(true)}>
            {isPublic ? t("withdraw") : t("publishPage")}
          </button>
        )}
      </div>
      {isPublic && (
        <div class="row collection-links">
          <CopyButton text={public_url} label={t("copyPageLink")} />
          <CopyButton text={embedCode(embed_url, { title: name, ...PLAYLIST })} label={t("copyPlaylistCode")} />
          <a href={public_url} target="_blank" rel="noreferrer">
            {t("openPage")}
          </a>
          <a href={feed_url} target="_blank" rel="noreferrer">
            {t("feed")}
          </a>
        </div>
      )}
      <ErrorNotice error={failure} />
      {isAsking && (
        <ConfirmDialog
          text={t(isPublic ? "withdrawText" : "publishCollectionText", { name })}
          onConfirm={change}
          onClose={() => setAsking(false)}
        />
      )}
    </section>
  );
}
