import { realpath } from "node:fs/promises";
import { resolve } from "node:path";
import type { Command } from "commander";
import { slots, UserError } from "#lib/base";
import { durationMs } from "./admin/time.ts";
import { serverOfEnvironment } from "./connect.ts";
import { requirePlaybackPolicy } from "./playback-policy.ts";
import { line, plain, printJson } from "./print.ts";
import { openEncoder } from "./push/encoder.ts";
import { api, RequestRefused } from "./push/http.ts";
import { meter } from "./push/progress-meter.ts";
import { pushEncoded } from "./push/push-encoded.ts";
import { retryPolicy } from "./push/retry-policy.ts";
import { fileAt, type Pushed, type Sender, sendFile } from "./push/send.ts";
import type { File } from "./push/state.ts";
import { targetOf } from "./push/target.ts";
import { untilReady } from "./push/wait-ready.ts";
import { newFiles } from "./push/watch-folder.ts";
import { settingsOf, wantsJson } from "./settings.ts";
import { amount } from "./units.ts";

type Options = {
  server?: string;
  key?: string;
  title?: string;
  tag: string[];
  collection?: string;
  playbackPolicy?: string;
  encodingProfile?: string;
  jobs?: string;
  watch?: string;
  wait?: string;
  encode?: boolean;
  source: boolean;
  scratch?: string;
  tenant?: string;
  waitReady?: boolean;
};

const FILES_AT_ONCE = 3;
/** An encoded file has thousands of small objects, and each loses a round trip of the connection. */
const ENCODED_AT_ONCE = 8;
/** Exit statuses that shells use for signals. */
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

type Send = (file: File, keepState?: boolean) => Promise<Pushed>;

/** Pushes files to a server, in one run or several: an interrupted run is resumed by the next. */
export async function pushCommand(command: Command): Promise<void> {
  const options = command.opts<Options>();
  const paths = command.args;
  if (options.waitReady && options.watch !== undefined)
    throw new UserError("--wait-ready requires files; --watch runs until it is stopped.", 2);
  if (paths.length > 0 === (options.watch !== undefined))
    throw new UserError("Specify files to push, or --watch with a directory.", 2);
  const fields = fieldsOf(options, paths.length);
  if (!options.encode && (options.scratch !== undefined || !options.source))
    throw new UserError("--scratch and --no-source require --encode.", 2);
  const jobs = Number(options.jobs ?? (options.encode ? ENCODED_AT_ONCE : 1));
  if (!(Number.isInteger(jobs) && jobs >= 1 && jobs <= 64))
    throw new UserError("--jobs must be a whole number from 1 to 64.", 2);
  const waitMs = options.wait === undefined ? null : durationMs("--wait", options.wait);
  const json = wantsJson(command);
  const { server, headers, tenantId } = await targetOf(settingsOf(command), {
    server: options.server ?? serverOfEnvironment(),
    key: options.key ?? (process.env.VODBOX_KEY || undefined),
    tenant: options.tenant,
  });
  let isStopped = false;
  const sender: Sender = {
    server,
    tenantId,
    call: api(server, headers),
    patience: retryPolicy(waitMs, (sentence) => isStopped || process.stderr.write(`vodbox: ${sentence}\n`)),
    slot: slots(jobs),
    meter: meter(),
    fields,
  };
  let stop = async () => {};
  let isWhole = false;
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.once(signal, async () => {
      isStopped = true;
      // Aborts everything in progress and stops showing progress.
      sender.meter.stop(false);
      process.stderr.write("\nvodbox: stopped; run the same command again to resume.\n");
      await stop();
      process.exit(EXIT_CODES[signal]);
    });
  try {
    // All of them first: a mistyped name is reported before an hour of work.
    const { files, faults } = await filesAt(paths, json);
    let send: Send = (file) => sendFile(sender, file);
    if (options.encode) {
      const opened = await openEncoder(command, sender, {
        slot: slots(1),
        scratch: options.scratch,
        profile: options.encodingProfile,
      });
      const { encoder } = opened;
      stop = opened.stop;
      send = (file, keepState) => pushEncoded(sender, file, { encoder, withSource: options.source, keepState });
    }
    if (options.watch !== undefined) {
      // A file's record has the name under which `push FILE` finds it.
      const folder = await realpath(options.watch).catch(() => resolve(options.watch as string));
      const sendNext: Send = (...given) => {
        sender.patience.afresh();
        return send(...given);
      };
      await watch(sendNext, { folder, server, json });
    } else {
      const ready = options.waitReady ? async (done: Pushed) => void (await addReady(sender, done)) : null;
      await pushAll({ send, ready, files, faults, json });
    }
    isWhole = true;
  } catch (error) {
    // A failure caused by stopping is not reported; the signal's exit status ends the process.
    if (isStopped) await new Promise(() => {});
    throw error;
  } finally {
    sender.meter.stop(isWhole);
    await stop();
  }
}

/** Each file once, even if it is given several times; and one sentence for each that cannot be pushed. */
async function filesAt(paths: string[], json: boolean): Promise<{ files: File[]; faults: string[] }> {
  const files = new Map<string, File>();
  const faults: string[] = [];
  for (const path of paths) {
    try {
      const file = await fileAt(await realpath(path).catch(() => path));
      files.set(file.path, file);
    } catch (error) {
      if (paths.length === 1 || !(error instanceof UserError)) throw error;
      if (!json) process.stderr.write(`vodbox: ${error.message}\n`);
      faults.push(error.message.replace(/\.$/, ""));
    }
  }
  return { files: [...files.values()], faults };
}

async function addReady(sender: Sender, done: Pushed): Promise<void> {
  if (!("watch_url" in done) || !done.watch_url) Object.assign(done, await untilReady(sender, done));
}

function fieldsOf(
  { title, tag, collection, playbackPolicy, encodingProfile }: Options,
  files: number,
): Record<string, unknown> {
  if (title !== undefined && files !== 1) throw new UserError("--title requires a single file.", 2);
  requirePlaybackPolicy(playbackPolicy);
  if (collection !== undefined && !/^[1-9]\d{0,14}$/.test(collection))
    throw new UserError("--collection must be the id of a collection.", 2);
  const tags = Object.fromEntries(
    tag.map((pair) => {
      const at = pair.indexOf("=");
      if (at < 1) throw new UserError(`--tag ${pair} is not a tag; use name=value.`, 2);
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
  return {
    ...(title !== undefined && { title }),
    ...(tag.length > 0 && { tags }),
    ...(collection !== undefined && { collection_id: Number(collection) }),
    ...(playbackPolicy !== undefined && { playback_policy: playbackPolicy }),
    ...(encodingProfile !== undefined && { encoding_profile: encodingProfile }),
  };
}

/** An error that is the same for all files. */
const concernsAll = (error: unknown) => error instanceof RequestRefused && [401, 403].includes(error.status);

type Batch = {
  send: Send;
  /** Waits until the video plays. */
  ready: ((done: Pushed) => Promise<void>) | null;
  files: File[];
  /** A sentence for each file that cannot be read. */
  faults: string[];
  json: boolean;
};

/** One file that fails does not stop the others. Throws a UserError that names all that failed. */
async function pushAll({ send, ready, files, faults, json }: Batch): Promise<void> {
  const pushed: (Pushed | undefined)[] = [];
  const failed = [...faults];
  const slot = slots(FILES_AT_ONCE);
  let over: unknown;
  await Promise.all(
    files.map(async (file, at) => {
      try {
        const done = await slot(async () => (over ? null : await send(file)));
        if (!done) return;
        pushed[at] = done;
        // Outside the slot, so that the next file is uploaded meanwhile.
        await ready?.(done);
        if (!json) report(done);
      } catch (error) {
        if ((files.length === 1 && faults.length === 0) || concernsAll(error)) over ??= error;
        failed.push(`${file.path}: ${error instanceof Error ? error.message.replace(/\.$/, "") : error}`);
      }
    }),
  );
  if (json && !over) printJson(pushed.filter((each) => each !== undefined));
  if (over) throw over;
  if (failed.length > 0)
    throw new UserError(
      `${failed.length} of ${files.length + faults.length} files were not ${ready ? "uploaded and encoded" : "uploaded"}: ${failed.join("; ")}.`,
    );
}

/** Runs until it is stopped. With `json`, one value per line. A refused file is reported and skipped. */
async function watch(
  send: Send,
  { folder, server, json }: { folder: string; server: string; json: boolean },
): Promise<void> {
  for await (const file of newFiles(folder, server)) {
    try {
      const done = await send(file, true);
      if (json) line(JSON.stringify(done));
      else report(done);
    } catch (error) {
      if (!(error instanceof UserError) || concernsAll(error)) throw error;
      process.stderr.write(`vodbox: ${file.path}: ${error.message}\n`);
    }
  }
}

function report(done: Pushed): void {
  // The bar is drawn again below.
  if (process.stderr.isTTY) process.stderr.write("\r\x1b[K");
  const { path, bytes, asset_id, external_id } = done;
  const watched = "watch_url" in done && done.watch_url ? `, ${done.watch_url}` : "";
  line(`${path}: ${amount(bytes)}, asset ${asset_id} (${external_id})${watched}`);
  const say = (message: string) => process.stderr.write(`vodbox: ${path}: ${plain(message)}\n`);
  for (const { message } of done.warnings ?? []) say(message);
  if ("encoding_status" in done && done.encoding_status === "partial")
    say(`It plays while it is encoded. The asset ${asset_id} may have more warnings when all of it is.`);
}
