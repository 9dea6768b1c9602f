import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { VodboxError } from "#clients/typescript/error.ts";
import { vodbox } from "#web/console/api.ts";
import { ConfirmDialog, Dialog } from "#web/console/components/dialog.tsx";
import { Field, Form } from "#web/console/components/form.tsx";
import { ErrorNotice } from "#web/console/components/notice.tsx";
import { useToast } from "#web/console/components/toast.tsx";
import { useVirtual } from "#web/console/hooks/use-virtual.ts";
import { useSession } from "#web/console/session.tsx";
import { useTexts } from "#web/console/texts/texts.tsx";
import type { Collection } from "#web/console/types.ts";
import { ancestorsOf, childrenOf, type Node, slugOf, visibleNodes, withDescendants } from "./collection-tree.ts";
import { dragged } from "./dragged.ts";
import { MoveDialog } from "./move-dialog.tsx";
import type { Selection } from "./selection.ts";
import { texts } from "./texts.ts";
import type { Collections } from "./use-collections.ts";

/** As in pages.css. */
const ROW = 32;

type Props = {
  collections: Collections;
  tenantId: number;
  chosen: number | null;
  onChoose(id: number | null): void;
  onMoveAssets(selection: Selection, collection: number | null): void;
};
type Open = "create" | "rename" | "move" | "delete" | null;

/** The tree of collections: restricts the list, and takes what is dropped on it. */
export function CollectionPanel({ collections, tenantId, chosen, onChoose, onMoveAssets }: Props) {
  const t = useTexts(texts);
  const { may } = useSession();
  const toast = useToast();
  const [open, setOpen] = useState<Open>(null);
  const [error, setError] = useState<unknown>(null);
  const all = collections.all ?? [];
  const mayWrite = may("assets:write");
  const current = all.find(({ id }) => id === chosen) ?? null;
  const close = () => setOpen(null);
  const attempt = async (work: () => Promise<unknown>) => {
    close();
    setError(null);
    try {
      await work();
      await collections.reload();
      toast(t("saved"));
    } catch (thrown) {
      setError(thrown);
    }
  };
  const moveTo = (id: number, parent_id: number | null) =>
    void attempt(() => vodbox.updateCollection({ id, body: { collection: { parent_id } } }));
  const create = async ({ name = "" }: Record<string, string>) => {
    const made = await createCollection(tenantId, name, chosen);
    await collections.reload();
    // Together: behind a closed dialog the reader may have chosen something else meanwhile.
    onChoose(made.id);
    close();
  };
  const rename = async ({ name = "" }: Record<string, string>) => {
    if (current) await vodbox.updateCollection({ id: current.id, body: { collection: { name } } });
    close();
    await collections.reload();
  };
  return (
    <section class="collections" aria-label={t("collections")}>
      <div class="row collections-head">
        <h2>{t("collections")}</h2>
        {mayWrite && (
          <button type="button" onClick={() => setOpen("create")}>
            {t("newCollection")}
          </button>
        )}
      </div>
      <ErrorNotice error={error} />
      <ErrorNotice error={collections.error} onRetry={collections.reload} />
      <Tree
        collections={all}
        chosen={chosen}
        onChoose={onChoose}
        mayWrite={mayWrite}
        onDropAt={(target) => {
          const what = dragged.get();
          dragged.end();
          if (!what) return;
          if ("assets" in what) onMoveAssets(what.assets, target);
          else if (what.collection !== target) moveTo(what.collection, target);
        }}
        onRename={() => setOpen("rename")}
        onDelete={() => setOpen("delete")}
      />
      {mayWrite && current && (
        <div class="row collection-actions">
          <button type="button" class="quiet" onClick={() => setOpen("rename")}>
            {t("rename")}
          </button>
          <button type="button" class="quiet" onClick={() => setOpen("move")}>
            {t("moveCollection")}
          </button>
          <button type="button" class="quiet" onClick={() => setOpen("delete")}>
            {t("deleteCollection")}
          </button>
        </div>
      )}
      {open === "create" && (
        <Dialog title={current ? t("newCollectionIn", { name: current.name }) : t("newCollection")} onClose={close}>
          <Form submit={t("create")} onSubmit={create}>
            <Field label={t("name")} name="name" required />
          </Form>
        </Dialog>
      )}
      {open === "rename" && current && (
        <Dialog title={t("renameCollection")} onClose={close}>
          <Form submit={t("save")} onSubmit={rename}>
            <Field label={t("name")} name="name" value={current.name} required />
          </Form>
        </Dialog>
      )}
      {open === "move" && current && (
        <MoveCollection all={all} current={current} onChoose={(parent) => moveTo(current.id, parent)} onClose={close} />
      )}
      {open === "delete" && current && (
        <ConfirmDialog
          text={t("deleteCollectionText", { name: current.name })}
          onConfirm={() =>
            attempt(async () => {
              await vodbox.deleteCollection({ id: current.id });
              onChoose(null);
            })
          }
          onClose={close}
        />
      )}
    </section>
  );
}

type MoveProps = { all: Collection[]; current: Collection; onChoose(id: number | null): void; onClose(): void };

function MoveCollection({ all, current, onChoose, onClose }: MoveProps) {
  const t = useTexts(texts);
  const possible = useMemo(() => {
    const below = withDescendants(childrenOf(all), current.id);
    return all.filter(({ id }) => !below.has(id));
  }, [all, current.id]);
  return (
    <MoveDialog
      title={t("moveCollectionTitle", { name: current.name })}
      collections={possible}
      none={t("topLevel")}
      onChoose={onChoose}
      onClose={onClose}
    />
  );
}

/** The slug is derived from the name, with some random letters when it is taken. */
async function createCollection(tenant_id: number, name: string, parent_id: number | null): Promise<Collection> {
  const slug = slugOf(name) || "collection";
  const create = (one: string) =>
    vodbox.createCollection({ body: { tenant_id, collection: { name, slug: one, parent_id } } });
  try {
    return await create(slug);
  } catch (error) {
    if (!(error instanceof VodboxError) || error.details?.["collection.slug"] === undefined) throw error;
    return create(`${slug}-${crypto.getRandomValues(new Uint32Array(1))[0]?.toString(36)}`);
  }
}

type TreeProps = {
  collections: Collection[];
  chosen: number | null;
  mayWrite: boolean;
  onChoose(id: number | null): void;
  onDropAt(id: number | null): void;
  onRename(): void;
  onDelete(): void;
};

/** Row 0 is all videos. Only the visible rows are rendered; the focus stays on the tree, which names its active row. */
function Tree({ collections, chosen, mayWrite, onChoose, onDropAt, onRename, onDelete }: TreeProps) {
  const t = useTexts(texts);
  const id = useId();
  const scroller = useRef<HTMLDivElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const [expanded, setExpanded] = useState<ReadonlySet<number>>(new Set());
  const [active, setActive] = useState<number | null>(chosen);
  const [target, setTarget] = useState<number | null | undefined>();
  const children = useMemo(() => childrenOf(collections), [collections]);
  const nodes = useMemo(() => visibleNodes(children, expanded), [children, expanded]);
  const { first, last, height, scrollTo } = useVirtual(list, { rows: nodes.length + 1, rowHeight: ROW, scroller });
  // A collection of the address is shown, whatever was collapsed.
  useEffect(() => {
    setActive(chosen);
    if (chosen === null || collections.length === 0) return;
    const above = ancestorsOf(collections, chosen);
    setExpanded((known) => (above.every((each) => known.has(each)) ? known : new Set([...known, ...above])));
  }, [chosen, collections.length === 0]);
  const activeRow = Math.max(
    0,
    active === null ? 0 : nodes.findIndex(({ collection }) => collection.id === active) + 1,
  );
  const expand = (one: number, isOpen: boolean) =>
    setExpanded((known) => {
      const next = new Set(known);
      if (isOpen) next.add(one);
      else next.delete(one);
      return next;
    });
  const go = (row: number) => {
    const to = Math.max(0, Math.min(nodes.length, row));
    setActive(nodes[to - 1]?.collection.id ?? null);
    scrollTo(to);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const node = nodes[activeRow - 1];
    const parent = node?.collection.parent_id ?? null;
    const keys: Record<string, () => void> = {
      ArrowDown: () => go(activeRow + 1),
      ArrowUp: () => go(activeRow - 1),
      Home: () => go(0),
      End: () => go(nodes.length),
      ArrowRight: () => {
        if (node?.hasChildren && !node.isExpanded) expand(node.collection.id, true);
        else if (node?.isExpanded) go(activeRow + 1);
      },
      ArrowLeft: () => {
        if (node?.isExpanded) expand(node.collection.id, false);
        else go(parent === null ? 0 : nodes.findIndex(({ collection }) => collection.id === parent) + 1);
      },
      Enter: () => onChoose(active),
      " ": () => onChoose(active),
      F2: () => mayWrite && active !== null && active === chosen && onRename(),
      Delete: () => mayWrite && active !== null && active === chosen && onDelete(),
    };
    const work = keys[event.key];
    if (!work) return;
    event.preventDefault();
    work();
  };
  const dropProps = (to: number | null) =>
    mayWrite && {
      onDragOver: (event: DragEvent) => {
        if (!dragged.get()) return;
        event.preventDefault();
        setTarget(to);
      },
      onDragLeave: () => setTarget(undefined),
      onDrop: (event: DragEvent) => {
        event.preventDefault();
        setTarget(undefined);
        onDropAt(to);
      },
    };
  const rows: (Node | null)[] = [];
  for (let row = first; row < last; row++) rows.push(nodes[row - 1] ?? null);
  return (
    <div class="tree" ref={scroller}>
      <div
        role="tree"
        tabIndex={0}
        aria-label={t("collections")}
        aria-activedescendant={`${id}-${active ?? 0}`}
        ref={list}
        style={{ height: `${height}px`, paddingTop: `${first * ROW}px` }}
        onKeyDown={onKeyDown}
      >
        {rows.map((node, index) => {
          const own = node?.collection.id ?? null;
          const states = [own === active && "active", own === target && target !== undefined && "target"];
          return (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the tree has the focus, and handles keys.
            <div
              key={own ?? `all-${first + index}`}
              id={`${id}-${own ?? 0}`}
              role="treeitem"
              class={["tree-row", ...states.filter(Boolean)].join(" ")}
              tabIndex={-1}
              aria-level={node?.level ?? 1}
              aria-setsize={node?.siblings ?? 1}
              aria-posinset={node?.position ?? 1}
              aria-selected={own === chosen}
              aria-expanded={node?.hasChildren ? node.isExpanded : undefined}
              draggable={mayWrite && own !== null}
              style={{ paddingInlineStart: `${Math.min(node?.level ?? 0, 12) * 16 + 10}px` }}
              onClick={() => {
                setActive(own);
                onChoose(own);
              }}
              onDragStart={(event) => own !== null && dragged.start(event, { collection: own })}
              onDragEnd={() => dragged.end()}
              {...dropProps(own)}
            >
              {node?.hasChildren && (
                // biome-ignore lint/a11y/noStaticElementInteractions: the arrow keys do the same.
                // biome-ignore lint/a11y/useKeyWithClickEvents: as above.
                <span
                  class={node.isExpanded ? "twist open" : "twist"}
                  onClick={(event) => {
                    event.stopPropagation();
                    expand(node.collection.id, !node.isExpanded);
                  }}
                />
              )}
              <span class="tree-name">{node ? node.collection.name : t("allVideos")}</span>
              {node && node.collection.asset_count > 0 && <span class="fine">{node.collection.asset_count}</span>}
            </div>
          );
        })}
      </div>
    </div>
  );
}
