import type { Tracer } from "#lib/tracing";
import type { Upload } from "#protocol/upload.ts";
import { RequestRefused } from "../push/http.ts";
import { type FileSender, sendFile } from "../push/send.ts";
import type { State } from "../push/state.ts";
import { attach } from "./attach.ts";
import { type Existing, tagOf } from "./existing.ts";
import { uploadFields } from "./fields.ts";
import type { Entry, Ledger } from "./ledger.ts";
import { discardDownload, type Obtaining, obtain } from "./obtain.ts";
import type { Item, Listed } from "./source.ts";

export type Importing = Obtaining & {
  provider: string;
  /** Null while traces are off. */
  tracer: Tracer | null;
  sender: FileSender;
  existing: Map<string, Existing>;
};

/**
 * Imports a video up to its encoding, or what an earlier run left of it. Each step is recorded before the next, so that a
 * process that is killed at any time continues without a second asset. Throws ItemError.
 */
export async function importVideo(importing: Importing, listed: Listed): Promise<void> {
  const { ledger, provider, source } = importing;
  const { id } = listed;
  const item = await source.load(listed, { isDryRun: false });
  const { fields, shortened } = uploadFields(item, { provider, id });
  const known = importing.existing.get(tagOf(id));
  const { title, seconds, oldPaths } = item;
  const about = { title, seconds, isWholeSeconds: item.isWholeSeconds ?? false, oldPaths, problems: [] };
  const notes = [...item.notes, ...shortened];
  let entry = ledger.put(id, { ...about, notes });
  if (known?.isUploaded) {
    // When the ledger of a run is lost, only the size of the asset is known.
    entry = ledger.put(id, {
      stage: "uploaded",
      assetId: known.assetId,
      externalId: known.externalId,
      bytes: item.media.kind === "local" ? item.media.bytes : (entry.bytes ?? known.bytes),
    });
  } else await upload(importing, listed, { item, fields, known });
  await discardDownload(importing.dir, id);
  const { assetId } = ledger.get(id) as Required<Entry>;
  const { captions, problems } = await attach(importing.sender, assetId, item);
  ledger.put(id, { stage: "attached", captions, problems: [...item.problems, ...problems] });
}

type Uploading = { item: Item; fields: Record<string, unknown>; known: Existing | undefined };

async function upload(importing: Importing, listed: Listed, { item, fields, known }: Uploading): Promise<void> {
  const { ledger, sender } = importing;
  const { id } = listed;
  const before = ledger.get(id);
  const obtained = await obtain(importing, listed, item);
  const { file, filename } = obtained;
  // Parts of two versions would not be a valid file; a draft without an open upload would become a second asset.
  const isSame = before?.bytes === file.bytes && before.modifiedMs === file.modifiedMs;
  if (!(isSame && (await isResumable(sender, before)))) {
    if (known) await deleteDraft(sender, known.assetId);
    ledger.put(id, { upload: null, bytes: file.bytes, modifiedMs: file.modifiedMs });
  }
  const state = uploadState(ledger, id);
  const named = { ...sender, fields: { ...sender.fields, ...merged(sender.fields, fields), filename } };
  const { asset_id, external_id } = await sendFile(named, file, state);
  ledger.put(id, { stage: "uploaded", assetId: asset_id, externalId: external_id, bytes: file.bytes });
}

/** Options of the command have precedence over the provider's values, except that tags are joined. */
const merged = (options: Record<string, unknown>, fields: Record<string, unknown>) => ({
  ...fields,
  ...options,
  tags: { ...(options.tags as object | undefined), ...(fields.tags as object) },
});

/** Whether an upload of an earlier run is open or complete. */
async function isResumable({ call, patience }: FileSender, entry: Entry | undefined): Promise<boolean> {
  const uploadId = entry?.upload?.uploadId;
  if (uploadId === undefined) return false;
  return patience
    .until(() => call<Upload>("GET", `/uploads/${uploadId}`))
    .then(({ status }) => status === "pending" || status === "completed")
    .catch((error) => {
      if (error instanceof RequestRefused && error.status === 404) return false;
      throw error;
    });
}

async function deleteDraft({ call, patience }: FileSender, assetId: number): Promise<void> {
  await patience
    .until(() => call("DELETE", `/assets/${assetId}`))
    .catch((error) => {
      if (!(error instanceof RequestRefused) || error.status !== 404) throw error;
    });
}

/** The state of an upload, in the ledger. */
function uploadState(ledger: Ledger, id: string) {
  const save = (state: State) => {
    ledger.put(id, { upload: state });
    return state;
  };
  return {
    load: () => ledger.get(id)?.upload ?? null,
    save,
    begin: () => save({ attempt: crypto.randomUUID() }),
  };
}
