import { type FileHandle, open, readFile, rm, stat, writeFile } from "node:fs/promises";
import { sleep, UserError } from "#lib/base";
import { isPage, isTemporary, type Opened, type ProviderClient, ProviderRefused } from "./client.ts";
import { ItemError, type Media } from "./source.ts";

type Remote = Extract<Media, { kind: "remote" }>;

/** Attempts in a row that end before any earlier one. */
const MAX_STALLED = 4;
const PAUSE_MS = 250;
/** New URLs of one file, for those that have expired. */
const MAX_REFRESHES = 2;
const EXPIRED = [401, 403, 404, 410];

export type Download = {
  client: ProviderClient;
  /** The file is written here; `<path>.json` describes an incomplete one. */
  path: string;
  media: Remote;
  /** Loads the video again, for a URL that is valid. Null: the video has no such file any more. */
  refresh(): Promise<Remote | null>;
  maxBytes: number;
  /** Called with bytes that arrived, for the rate. */
  onBytes(bytes: number): void;
};

/** Something other than the file is at its URL. */
class WrongContent extends ItemError {}

/**
 * Downloads a file and returns its size. An interrupted download continues, also that of an earlier run, when the server
 * identifies the version of the file. Throws ItemError.
 */
export async function download(given: Download): Promise<number> {
  let { media } = given;
  let furthest = 0;
  for (let refreshes = 0, stalled = 0; ; ) {
    try {
      return await given.client.retry(() => attemptOf({ ...given, media }));
    } catch (error) {
      if (error instanceof Incomplete && stalled < MAX_STALLED) {
        stalled = error.received > furthest ? 0 : stalled + 1;
        furthest = Math.max(furthest, error.received);
        await sleep(PAUSE_MS * stalled);
        continue;
      }
      const isExpired = error instanceof ProviderRefused && EXPIRED.includes(error.status);
      const fresh =
        (isExpired || error instanceof WrongContent) && refreshes++ < MAX_REFRESHES ? await given.refresh() : null;
      if (fresh !== null) media = fresh;
      else if (error instanceof ProviderRefused && [404, 410].includes(error.status))
        throw new ItemError(`the file is missing at the provider (${error.status})`);
      else throw error;
    }
  }
}

/** The connection ended during the file, after some bytes of it. The next attempt continues there, if it can. */
class Incomplete extends ItemError {
  readonly received: number;
  constructor(message: string, received = 0) {
    super(message);
    this.received = received;
  }
}

async function attemptOf({ client, path, media, maxBytes, onBytes }: Download): Promise<number> {
  const before = await partOf(path);
  const headers: Record<string, string> = { accept: "*/*", "accept-encoding": "identity" };
  if (before) Object.assign(headers, { range: `bytes=${before.bytes}-`, "if-range": before.version });
  const opened = await client
    .open(media.url, { headers, withCredentials: media.withCredentials ?? false })
    .catch(async (error) => {
      // 416: the part is not the beginning of the file.
      if (error instanceof ProviderRefused && error.status === 416 && before) {
        await discard(path);
        throw new Incomplete(error.message);
      }
      throw error;
    });
  const { response, body } = opened;
  const start = response.status === 206 ? startOf(response) : 0;
  const length = lengthOf(response);
  const total = length === null ? media.bytes : start + length;
  const fault = faultOf({ response, start, total, before: before?.bytes ?? 0, media, maxBytes });
  if (fault) {
    await body.return(undefined).catch(() => {});
    await response.body?.cancel().catch(() => {});
    if (start > 0) await discard(path);
    throw fault;
  }
  await describe(path, response);
  const received = await store(opened, { path, start, maxBytes, onBytes });
  if (total !== null && received !== total) {
    // More than announced cannot be continued.
    if (received > total) await discard(path);
    throw new Incomplete(`the file ended after ${received} of ${total} bytes`, received);
  }
  if (received === 0) throw new ItemError("the file at the provider is empty");
  await rm(`${path}.json`, { force: true });
  return received;
}

type Checked = {
  response: Response;
  start: number;
  total: number | null;
  before: number;
  media: Remote;
  maxBytes: number;
};

function faultOf({ response, start, total, before, media, maxBytes }: Checked): ItemError | null {
  const type = response.headers.get("content-type") ?? "";
  if (isPage(response) || /^(application\/(problem\+)?(json|xml)|text\/xml)\b/i.test(type))
    return new WrongContent("the provider answered with a document in place of the file");
  if (response.status === 206 && start !== before) return new Incomplete("the provider sent another part of the file");
  if (total !== null && total > maxBytes) return new ItemError(`the file has more than ${maxBytes} bytes`);
  if (total !== null && media.bytes !== null && total !== media.bytes)
    return new WrongContent(`the file has ${total} bytes, but the provider lists ${media.bytes}`);
  return null;
}

async function store(
  { body }: Opened,
  { path, start, maxBytes, onBytes }: Pick<Download, "path" | "maxBytes" | "onBytes"> & { start: number },
): Promise<number> {
  let received = start;
  let file: FileHandle | null = null;
  try {
    file = await open(path, start > 0 ? "r+" : "w", 0o600);
    for await (const chunk of body) {
      await writeAt(file, chunk, received);
      received += chunk.length;
      onBytes(chunk.length);
      if (received > maxBytes) throw new ItemError(`the file has more than ${maxBytes} bytes`);
    }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOSPC")
      throw new UserError(`There is no space left for ${path}; free some, or run the import in another directory.`);
    if (isTemporary(error) && received > start) throw new Incomplete((error as Error).message, received);
    throw error;
  } finally {
    await file?.close();
  }
  return received;
}

async function writeAt(file: FileHandle, chunk: Uint8Array, position: number): Promise<void> {
  for (let done = 0; done < chunk.length; )
    done += (await file.write(chunk, done, chunk.length - done, position + done)).bytesWritten;
}

/** A strong ETag, or the time of the last change, which If-Range accepts (RFC 9110, 13.1.5). */
async function describe(path: string, { headers }: Response): Promise<void> {
  const etag = headers.get("etag") ?? "";
  const version = etag.startsWith('"') ? etag : headers.get("last-modified");
  if (version === null) await rm(`${path}.json`, { force: true });
  else await writeFile(`${path}.json`, JSON.stringify({ version }), { mode: 0o600 });
}

/** What is already there of a file that can be continued. */
async function partOf(path: string): Promise<{ bytes: number; version: string } | null> {
  try {
    const { version } = JSON.parse(await readFile(`${path}.json`, "utf8")) as { version?: unknown };
    const { size } = await stat(path);
    return typeof version === "string" && size > 0 ? { bytes: size, version } : null;
  } catch {
    return null;
  }
}

/** Removes a download and its description. */
export async function discard(path: string): Promise<void> {
  await rm(`${path}.json`, { force: true });
  await rm(path, { force: true });
}

function lengthOf({ headers }: Response): number | null {
  const length = headers.get("content-length");
  // fetch has decoded the body: its length is another one.
  return length === null || (headers.get("content-encoding") ?? "identity") !== "identity" ? null : Number(length);
}

const startOf = ({ headers }: Response) =>
  Number(/^bytes (\d{1,15})-/.exec(headers.get("content-range") ?? "")?.[1] ?? Number.NaN);
