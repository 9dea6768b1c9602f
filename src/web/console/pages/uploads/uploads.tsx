import { useRef, useState } from "preact/hooks";
import { useLocation } from "preact-iso/router";
import { vodbox } from "#web/console/api.ts";
import { pagePath } from "#web/console/base.ts";
import { Badge } from "#web/console/components/badge.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { PageHead } from "#web/console/components/page-head.tsx";
import { Progress } from "#web/console/components/progress.tsx";
import { TenantSelect } from "#web/console/components/tenant-select.tsx";
import { bytes, duration } from "#web/console/format.ts";
import { useResource } from "#web/console/hooks/use-resource.ts";
import { useSession } from "#web/console/session.tsx";
import { useLanguage, useTexts } from "#web/console/texts/texts.tsx";
import { chosenFiles, type FoundFile, filesOf } from "./dropped-files.ts";
import { FromUrl } from "./from-url.tsx";
import { texts } from "./texts.ts";
import { type Target, type Transfer, transfers, useTransfers } from "./transfers.ts";
import { isSameFile, type Unfinished } from "./unfinished.ts";
import { UnfinishedList } from "./unfinished-list.tsx";

/** Rows that are shown: those that are being sent, then the next ones. */
const SHOWN = 200;
const ORDER = { sending: 0, failed: 1, waiting: 2, encoding: 3, ready: 4 } as const;

/** Uploads files and folders, and shows them until they play. */
export default function Uploads() {
  const t = useTexts(texts);
  const { query } = useLocation();
  const { session, may } = useSession();
  const [tenant, setTenant] = useState<string | null>(null);
  const [isOver, setOver] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const wanted = useRef<Unfinished | null>(null);
  const [other, setOther] = useState<string | null>(null);
  const list = useTransfers();
  const isOperator = session.tenant_id === null;
  const target: Target = {
    owner: isOperator ? "admin" : String(session.tenant_id),
    tenantId: isOperator && tenant !== null ? Number(tenant) : null,
    collectionId: !isOperator && /^[1-9]\d{0,14}$/.test(query.collection ?? "") ? Number(query.collection) : null,
  };
  // Its tenants are being loaded, or there are none. An upload that is resumed has one already.
  const isWithoutTenant = isOperator && tenant === null;
  if (!may("assets:write")) return <NotAllowed />;
  const add = (files: FoundFile[]) => transfers.add(files, target);
  /** Opens the browser's dialog for files, for a folder, or for the file of an interrupted upload. */
  const choose = (what: "files" | "folder" | Unfinished) => {
    if (!input.current) return;
    wanted.current = typeof what === "string" ? null : what;
    setOther(null);
    input.current.webkitdirectory = what === "folder";
    input.current.click();
  };
  const onChosen = (files: FoundFile[]) => {
    const one = wanted.current;
    if (one === null) return add(files);
    const same = files.filter(({ file }) => isSameFile(target.owner, one.key, file));
    if (same.length > 0) add(same);
    else setOther(one.name);
  };
  const sorted = list.toSorted((a, b) => ORDER[a.state] - ORDER[b.state]);
  return (
    <>
      <PageHead title={t("uploads")}>
        <FromUrl target={target} isDisabled={isWithoutTenant} />
        <button type="button" disabled={isWithoutTenant} onClick={() => choose("folder")}>
          {t("chooseFolder")}
        </button>
        <button type="button" class="primary" disabled={isWithoutTenant} onClick={() => choose("files")}>
          {t("upload")}
        </button>
      </PageHead>
      {isOperator && <TenantSelect onChange={setTenant} />}
      {target.collectionId !== null && <IntoCollection id={target.collectionId} />}
      {/* biome-ignore lint/a11y/noStaticElementInteractions: the button does the same for the keyboard. */}
      <div
        class={isOver ? "drop over" : "drop"}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => {
          event.preventDefault();
          setOver(false);
          if (event.dataTransfer && !isWithoutTenant) void filesOf(event.dataTransfer).then(add);
        }}
      >
        <p>{t("dropHere")}</p>
        <button type="button" disabled={isWithoutTenant} onClick={() => choose("files")}>
          {t("chooseFiles")}
        </button>
        <input
          ref={input}
          type="file"
          class="unseen"
          tabIndex={-1}
          aria-label={t("chooseFiles")}
          multiple
          accept="video/*,audio/*,.mkv,.mxf,.ts"
          onChange={({ currentTarget }) => {
            onChosen(chosenFiles(currentTarget.files));
            currentTarget.value = "";
            currentTarget.webkitdirectory = false;
            wanted.current = null;
          }}
        />
        <p class="fine">{t("resumeHint")}</p>
      </div>
      <UnfinishedList owner={target.owner} list={list} other={other} onChoose={choose} />
      <Total list={list} />
      {list.length === 0 && <p class="empty">{t("noUploads")}</p>}
      <ul class="transfers">
        {sorted.slice(0, SHOWN).map((transfer) => (
          <Row key={transfer.id} transfer={transfer} />
        ))}
      </ul>
      {sorted.length > SHOWN && <p class="fine">{t("moreFiles", { count: sorted.length - SHOWN })}</p>}
    </>
  );
}

function NotAllowed() {
  const t = useTexts(texts);
  return (
    <>
      <PageHead title={t("uploads")} />
      <p class="empty">{t("notAllowed")}</p>
    </>
  );
}

function IntoCollection({ id }: { id: number }) {
  const t = useTexts(texts);
  const { value } = useResource(() => vodbox.getCollection({ id }), [id]);
  if (!value) return null;
  return <p>{t("intoCollection", { name: value.name })}</p>;
}

/** All files together, when there are several. */
function Total({ list }: { list: Transfer[] }) {
  const t = useTexts(texts);
  const { language } = useLanguage();
  if (list.length < 2) return null;
  const isSent = ({ state }: Transfer) => state === "encoding" || state === "ready";
  const size = list.reduce((sum, { file }) => sum + file.size, 0);
  const sent = list.reduce((sum, each) => sum + (isSent(each) ? each.file.size : each.sent), 0);
  const speed = list.reduce((sum, each) => sum + (each.state === "sending" ? each.speed : 0), 0);
  const count = t("filesSent", { count: list.filter(isSent).length, total: list.length });
  return (
    <div class="transfer-total">
      <Progress value={size === 0 ? 1 : sent / size} label={t("allFiles")} />
      <p class="fine">
        {count} · {bytes(sent, language)} / {bytes(size, language)}
        {speed > 0 && ` · ${bytes(speed, language)}/s · ${t("remaining")} ${duration((size - sent) / speed)}`}
      </p>
    </div>
  );
}

function Row({ transfer }: { transfer: Transfer }) {
  const t = useTexts(texts);
  const { file, path, state, assetId, sent, speed, remaining, encoded, stage, error } = transfer;
  const isSending = state === "sending";
  const text = {
    waiting: t("waiting"),
    sending: t("uploading"),
    encoding: stage ?? t("encodingWaits"),
    ready: t("ready"),
    failed: t("failed"),
  };
  const states = { waiting: "draft", sending: "processing", encoding: "processing", ready: "ready", failed: "errored" };
  const name = path ?? file.name;
  const share = isSending ? sent / Math.max(1, file.size) : encoded;
  return (
    <li class="transfer">
      <div class="row">
        <strong class="grow">{assetId === null ? name : <a href={pagePath(`assets/${assetId}`)}>{name}</a>}</strong>
        <Badge state={states[state]} text={text[state]} />
        {(isSending || state === "waiting") && (
          <button type="button" onClick={() => transfers.cancel(transfer.id)}>
            {t("cancel")}
          </button>
        )}
        {state === "failed" && (
          <button type="button" onClick={() => transfers.retry(transfer.id)}>
            {t("retry")}
          </button>
        )}
      </div>
      {(isSending || state === "encoding") && (
        <Progress value={share} label={`${file.name}: ${isSending ? t("uploading") : t("encoding")}`} />
      )}
      <Figures transfer={{ sent, speed, remaining }} total={file.size} isSending={isSending} />
      <ErrorNotice error={error} />
    </li>
  );
}

type FiguresProps = { transfer: Pick<Transfer, "sent" | "speed" | "remaining">; total: number; isSending: boolean };

function Figures({ transfer: { sent, speed, remaining }, total, isSending }: FiguresProps) {
  const t = useTexts(texts);
  const { language } = useLanguage();
  if (!isSending) return <p class="fine">{bytes(total, language)}</p>;
  return (
    <p class="fine">
      {bytes(sent, language)} / {bytes(total, language)}
      {speed > 0 && ` · ${bytes(speed, language)}/s`}
      {remaining !== null && ` · ${t("remaining")} ${duration(remaining)}`}
    </p>
  );
}
