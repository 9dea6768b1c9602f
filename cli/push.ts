import { realpath } from "node:fs/promises";
import { resolve } from "node:path";
import type { Command } from "commander";
import { UserError } from "../src/lib/errors.ts";
import { withoutTrailing } from "../src/lib/without-trailing.ts";
import { durationMs } from "./admin/time.ts";
import { line, printJson } from "./print.ts";
import { openEncoder } from "./push/encoder.ts";
import { api, RequestRefused } from "./push/http.ts";
import { amount, meter } from "./push/progress-meter.ts";
import { pushEncoded } from "./push/push-encoded.ts";
import { retryPolicy } from "./push/retry-policy.ts";
import { fileAt, type Pushed, type Sender, sendFile } from "./push/send.ts";
import type { File } from "./push/state.ts";
import { newFiles } from "./push/watch-folder.ts";
import { wantsJson } from "./settings.ts";

type Options = {
  server?: string;
  key?: string;
  title?: string;
  tag: string[];
  collection?: string;
  playbackPolicy?: string;
  jobs?: string;
  watch?: string;
  wait?: string;
  encode?: boolean;
  source: boolean;
  scratch?: string;
};

const FILES_AT_ONCE = 3;
/** Of what is encoded thousands of small ones are sent, and a turn each is lost to the line's length. */
const ENCODED_AT_ONCE = 8;
/** What a shell makes of the signals that end a process. */
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

type Send = (file: File, keepState?: boolean) => Promise<Pushed>;

/** Files to a server, in one run or several: what a run does not end, the next goes on with. */
export async function pushCommand(command: Command): Promise<void> {
  const options = command.opts<Options>();
  const paths = command.args;
  const server = addressOf(options.server ?? process.env.VODBOX_SERVER);
  const key = options.key ?? process.env.VODBOX_KEY;
  if (!key) throw new UserError("Say whose upload it is with an API key in VODBOX_KEY, or --key.", 2);
  if (paths.length > 0 === (options.watch !== undefined))
    throw new UserError("Say which files to push, or --watch with a folder.", 2);
  const fields = fieldsOf(options, paths.length);
  if (!options.encode && (options.scratch !== undefined || !options.source))
    throw new UserError("--scratch and --no-source go with --encode.", 2);
  const jobs = Number(options.jobs ?? (options.encode ? ENCODED_AT_ONCE : 1));
  if (!(Number.isInteger(jobs) && jobs >= 1 && jobs <= 64))
    throw new UserError("--jobs must be a whole number from 1 to 64.", 2);
  const waitMs = options.wait === undefined ? null : durationMs("--wait", options.wait);
  const json = wantsJson(command);
  let isStopped = false;
  const sender: Sender = {
    server,
    call: api(server, key),
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
      // What is still going on ends; nobody waits for how far it is.
      sender.meter.stop(false);
      process.stderr.write("\nvodbox: stopped; the same command goes on where this one ended.\n");
      await stop();
      process.exit(EXIT_CODES[signal]);
    });
  try {
    // All of them first: a mistyped name is told before an hour of work.
    const files = await filesAt(paths);
    let send: Send = (file) => sendFile(sender, file);
    if (options.encode) {
      const opened = await openEncoder(command, sender, { slot: slots(1), scratch: options.scratch });
      const { encoder } = opened;
      stop = opened.stop;
      send = (file, keepState) => pushEncoded(sender, file, { encoder, withSource: options.source, keepState });
    }
    if (options.watch !== undefined) {
      // A file's record bears the name that `push FILE` finds it by.
      const folder = await realpath(options.watch).catch(() => resolve(options.watch as string));
      const sendNext: Send = (...given) => {
        sender.patience.afresh();
        return send(...given);
      };
      await watch(sendNext, { folder, server, json });
    } else await pushAll(send, files, json);
    isWhole = true;
  } catch (error) {
    // What failed because it was stopped is no news; the signal's own way ends the process.
    if (isStopped) await new Promise(() => {});
    throw error;
  } finally {
    sender.meter.stop(isWhole);
    await stop();
  }
}

/** Each once, however often it is named. */
async function filesAt(paths: string[]): Promise<File[]> {
  const files = new Map<string, File>();
  for (const path of paths) {
    const file = await fileAt(await realpath(path).catch(() => path));
    files.set(file.path, file);
  }
  return [...files.values()];
}

function addressOf(server: string | undefined): string {
  if (!server) throw new UserError("Say which server to push to: --server http://127.0.0.1:8080, or VODBOX_SERVER.", 2);
  if (!/^https?:\/\//.test(server) || !URL.canParse(server))
    throw new UserError(`--server ${server} is no address; say http://127.0.0.1:8080.`, 2);
  return withoutTrailing(server, "/");
}

function fieldsOf({ title, tag, collection, playbackPolicy }: Options, files: number): Record<string, unknown> {
  if (title !== undefined && files !== 1) throw new UserError("--title is for one file alone.", 2);
  if (playbackPolicy !== undefined && !["public", "signed"].includes(playbackPolicy))
    throw new UserError("--playback-policy must be public or signed.", 2);
  if (collection !== undefined && !/^[1-9]\d{0,14}$/.test(collection))
    throw new UserError("--collection must be the id of a collection.", 2);
  const tags = Object.fromEntries(
    tag.map((pair) => {
      const at = pair.indexOf("=");
      if (at < 1) throw new UserError(`--tag ${pair} is no tag; say name=value.`, 2);
      return [pair.slice(0, at), pair.slice(at + 1)];
    }),
  );
  return {
    ...(title !== undefined && { title }),
    ...(tag.length > 0 && { tags }),
    ...(collection !== undefined && { collection_id: Number(collection) }),
    ...(playbackPolicy !== undefined && { playback_policy: playbackPolicy }),
  };
}

/** At most `most` at once, in the order of asking. */
function slots(most: number): Sender["slot"] {
  let free = most;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (free > 0) free--;
    else await new Promise<void>((resolve) => waiting.push(resolve));
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else free++;
    }
  };
}

/** No answer to any of the files can be another one. */
const concernsAll = (error: unknown) => error instanceof RequestRefused && [401, 403].includes(error.status);

async function pushAll(send: Send, files: File[], json: boolean): Promise<void> {
  const pushed: (Pushed | undefined)[] = [];
  const failed: string[] = [];
  const slot = slots(FILES_AT_ONCE);
  let over: unknown;
  await Promise.all(
    files.map((file, at) =>
      slot(async () => {
        if (over) return;
        try {
          const done = await send(file);
          pushed[at] = done;
          if (!json) tell(done);
        } catch (error) {
          if (files.length === 1 || concernsAll(error)) over ??= error;
          failed.push(`${file.path}: ${error instanceof Error ? error.message.replace(/\.$/, "") : error}`);
        }
      }),
    ),
  );
  if (json && !over) printJson(pushed.filter((each) => each !== undefined));
  if (over) throw over;
  if (failed.length > 0)
    throw new UserError(`${failed.length} of ${files.length} files did not get there: ${failed.join("; ")}.`);
}

/** Until it is stopped. With `json` a value a line. A file that is refused is told of and left alone. */
async function watch(
  send: Send,
  { folder, server, json }: { folder: string; server: string; json: boolean },
): Promise<void> {
  for await (const file of newFiles(folder, server)) {
    try {
      const done = await send(file, true);
      if (json) line(JSON.stringify(done));
      else tell(done);
    } catch (error) {
      if (!(error instanceof UserError) || concernsAll(error)) throw error;
      process.stderr.write(`vodbox: ${file.path}: ${error.message}\n`);
    }
  }
}

function tell(done: Pushed): void {
  // The bar is drawn anew below.
  if (process.stderr.isTTY) process.stderr.write("\r\x1b[K");
  const { path, bytes, asset_id, external_id } = done;
  const watched = "watch_url" in done && done.watch_url ? `, ${done.watch_url}` : "";
  line(`${path}: ${amount(bytes)}, asset ${asset_id} (${external_id})${watched}`);
}
