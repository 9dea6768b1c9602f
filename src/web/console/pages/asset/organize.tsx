import { useState } from "preact/hooks";
import { vodbox } from "#web/console/api.ts";
import { pagePath } from "#web/console/base.ts";
import { Field, Form, Select } from "#web/console/components/form.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { Table } from "#web/console/components/table.tsx";
import { useToast } from "#web/console/components/toast.tsx";
import { useAttempt } from "#web/console/hooks/use-attempt.ts";
import { useResource } from "#web/console/hooks/use-resource.ts";
import { useSession } from "#web/console/session.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Asset } from "#web/console/types.ts";
import type { SectionProps } from "./section.ts";
import { texts } from "./texts.ts";

type Props = Pick<SectionProps, "asset" | "onChange">;

export default function Organize({ asset, onChange }: Props) {
  return (
    <div class="halves">
      <Tags asset={asset} onChange={onChange} />
      <div>
        <Collection asset={asset} onChange={onChange} />
        <Duplicates asset={asset} />
      </div>
    </div>
  );
}

/** A tag's value as the API stores it: numbers and truth values are not texts. */
function tagValueOf(text: string): string | number | boolean {
  if (text === "true" || text === "false") return text === "true";
  const number = Number(text);
  return text !== "" && Number.isFinite(number) && String(number) === text ? number : text;
}

function Tags({ asset, onChange }: Props) {
  const t = useTexts(texts);
  const toast = useToast();
  const { failure, attempt } = useAttempt();
  const [edited, setEdited] = useState({ name: "", value: "", version: 0 });
  const edit = (name: string, value: string) => setEdited(({ version }) => ({ name, value, version: version + 1 }));
  const set = async ({ name = "", value = "" }: Record<string, string>) => {
    const tags = await vodbox.updateTags({ id: asset.id, body: { [name]: tagValueOf(value) } });
    onChange({ ...asset, tags });
    edit("", "");
    toast(t("saved"));
  };
  const remove = (name: string) =>
    attempt(async () => {
      onChange({ ...asset, tags: await vodbox.updateTags({ id: asset.id, body: { [name]: null } }) });
    });
  const items = Object.entries(asset.tags).map(([id, value]) => ({ id, value: String(value) }));
  return (
    <section>
      <h2>{t("tags")}</h2>
      <ErrorNotice error={failure} />
      {items.length === 0 ? (
        <p class="fine">{t("noTags")}</p>
      ) : (
        <Table
          items={items}
          columns={[
            { title: t("tagName"), cell: ({ id }) => <code>{id}</code> },
            { title: t("tagValue"), cell: ({ value }) => value },
            {
              title: t("actions"),
              cell: ({ id, value }) => (
                <span class="row">
                  <button type="button" onClick={() => edit(id, value)}>
                    {t("edit")}
                  </button>
                  <button type="button" onClick={() => remove(id)}>
                    {t("remove")}
                  </button>
                </span>
              ),
            },
          ]}
        />
      )}
      <Form key={edited.version} submit={t("setTag")} onSubmit={set}>
        <Field label={t("tagName")} name="name" value={edited.name} required />
        <Field label={t("tagValue")} name="value" value={edited.value} hint={t("tagHint")} />
      </Form>
    </section>
  );
}

type Node = { id: number; name: string; children?: Node[] };

/** Each collection with the names above it, depth first. Without recursion: nesting is not limited. */
function flattened(roots: readonly Node[]): { id: number; path: string }[] {
  const found: { id: number; path: string }[] = [];
  const rest = roots.map((node) => ({ node, above: "" })).reverse();
  for (let next = rest.pop(); next; next = rest.pop()) {
    const path = next.above + next.node.name;
    found.push({ id: next.node.id, path });
    for (const node of [...(next.node.children ?? [])].reverse()) rest.push({ node, above: `${path} / ` });
  }
  return found;
}

function Collection({ asset, onChange }: Props) {
  const t = useTexts(texts);
  const { may, isAdmin } = useSession();
  const toast = useToast();
  const { failure, attempt } = useAttempt();
  const { value, error, reload } = useResource(async () => {
    const tree = await vodbox.getCollectionTree(isAdmin ? { tenant_id: asset.tenant_id } : {});
    return flattened(tree);
  }, [asset.tenant_id]);
  if (error) return <ErrorNotice error={error} onRetry={reload} />;
  if (!value) return <p class="fine">{t("loading")}</p>;
  const choose = (id: string) =>
    attempt(async () => {
      const collection_id = id === "" ? null : Number(id);
      onChange(await vodbox.updateAsset({ id: asset.id, body: { video_asset: { collection_id } } }));
      toast(t("saved"));
    });
  return (
    <section>
      <h2>{t("collection")}</h2>
      <ErrorNotice error={failure} />
      {may("assets:write") ? (
        <Select
          label={t("collection")}
          name="collection"
          value={String(asset.collection_id ?? "")}
          options={[["", t("noCollection")], ...value.map(({ id, path }) => [String(id), path] as [string, string])]}
          onChange={choose}
        />
      ) : (
        <p>{value.find(({ id }) => id === asset.collection_id)?.path ?? t("noCollection")}</p>
      )}
    </section>
  );
}

/** Other assets with the same file. */
function Duplicates({ asset }: { asset: Asset }) {
  const t = useTexts(texts);
  const { isAdmin } = useSession();
  const { id, tenant_id, source_sha256, original_filename, source_bytes } = asset;
  const { value, error, reload } = useResource(async () => {
    const file =
      original_filename !== null && source_bytes > 0 ? { filename: original_filename, bytes: source_bytes } : null;
    if (source_sha256 === null && file === null) return [];
    const query = { ...(source_sha256 !== null && { sha256: source_sha256 }), ...file };
    const { duplicates } = await vodbox.listDuplicates({ ...query, ...(isAdmin && { tenant_id }) });
    return duplicates.filter(({ asset_id }) => asset_id !== id);
  }, [id, source_sha256]);
  return (
    <section>
      <h2>{t("duplicates")}</h2>
      <ErrorNotice error={error} onRetry={reload} />
      {value?.length === 0 && <p class="fine">{t("noDuplicates")}</p>}
      <ul class="plain">
        {value?.map((one) => (
          <li key={one.asset_id}>
            <a href={pagePath(`assets/${one.asset_id}`)}>{one.title}</a>{" "}
            <span class="fine">{t(one.match === "sha256" ? "sameContent" : "sameName")}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}
