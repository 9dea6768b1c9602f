import { mkdir, rmdir } from "node:fs/promises";
import { resolve } from "node:path";
import type { Command } from "commander";
import { sha256, slots, UserError, withoutTrailing } from "#lib/base";
import { cacheDir, resolveBinaries } from "#lib/executable";
import { IMPORT_SOURCE_NAMES, type ImportSourceName } from "#model/import-sources.ts";
import { startTracing } from "#src/tracing.ts";
import { serverOfEnvironment } from "./connect.ts";
import { dryRun } from "./import/dry-run.ts";
import { existingAssets } from "./import/existing.ts";
import { type Ledger, openLedger } from "./import/ledger.ts";
import { type Plan, planOf } from "./import/plan.ts";
import { importProgress } from "./import/progress.ts";
import { PROVIDERS } from "./import/providers/registry.ts";
import { REDIRECT_FORMATS, type RedirectFormat, redirects } from "./import/redirects.ts";
import { printReport, replace, reportOf, writeCsv } from "./import/report.ts";
import { newOutcome, runImport } from "./import/run.ts";
import { type End, reportToServer } from "./import/server-report.ts";
import { ItemError, type Provider, type Source } from "./import/source.ts";
import { verifier } from "./import/verify.ts";
import { requirePlaybackPolicy } from "./playback-policy.ts";
import { api } from "./push/http.ts";
import { retryPolicy } from "./push/retry-policy.ts";
import type { FileSender } from "./push/send.ts";
import { targetOf } from "./push/target.ts";
import { settingsOf, wantsJson } from "./settings.ts";

type Options = {
  server?: string;
  key?: string;
  tenant?: string;
  dryRun?: boolean;
  limit?: string;
  jobs?: string;
  collection?: string;
  playbackPolicy?: string;
  encodingProfile?: string;
  redirects?: string;
  wait: boolean;
};

const JOBS = 3;
/** Exit statuses that shells use for signals. */
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

/** Copies the videos of another platform, a directory or a bucket into a tenant. A repeated run continues, and adds what is new. */
export async function importCommand(command: Command): Promise<void> {
  const options = command.opts<Options>();
  const json = wantsJson(command);
  const [given = "", from] = command.args;
  const name = sourceNameOf(given);
  const limit = whole("--limit", options.limit, Number.POSITIVE_INFINITY);
  const jobs = whole("--jobs", options.jobs, JOBS, 32);
  const format = formatOf(options.redirects);
  const fields = fieldsOf(options);
  const { provider, source } = await sourceOf(name, from);
  const config = settingsOf(command);
  const target = await targetOf(config, {
    server: options.server ?? serverOfEnvironment(),
    key: options.key ?? (process.env.VODBOX_KEY || undefined),
    tenant: options.tenant,
  });
  const { server, headers, tenantId } = target;
  let moved = (_: number) => {};
  const sender: FileSender = {
    server,
    tenantId,
    fields,
    call: api(server, headers),
    slot: slots(jobs),
    patience: retryPolicy(null),
    meter: { expect: () => {}, sent: (bytes) => moved(bytes) },
  };
  const files = `vodbox-import-${name}`;
  const owner = await tenantOf(sender);
  const tracer = await startTracing("import", { warn: (message) => void process.stderr.write(`vodbox: ${message}\n`) });
  const ledger = await openLedger(`${files}.ledger`, sha256(JSON.stringify([server, owner, source.location])));
  let stopShowing = () => {};
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.once(signal, () => {
      stopShowing();
      process.stderr.write("\nvodbox: stopped; run the same command again to continue.\n");
      process.exit(EXIT_CODES[signal]);
    });
  try {
    const existing = await existingAssets(sender, name);
    if (options.dryRun) {
      if (!(await dryRun({ source, ledger, existing }, { json, limit }))) process.exitCode = 1;
      return;
    }
    const plan = await planned(source, provider);
    const dir = resolve(`${files}.parts`);
    await mkdir(dir, { recursive: true, mode: 0o700 });
    const checks = verifier({ sender, ledger, onVerified: () => progress.finished() });
    const progress = importProgress(Math.min(plan.videos, limit), checks.waiting);
    stopShowing = () => progress.stop(false);
    moved = progress.moved;
    const binaries = () => resolveBinaries({ ffmpeg: config.ffmpeg, ffprobe: config.ffprobe, cacheDir: cacheDir() });
    const importing = {
      provider: name,
      tracer,
      source,
      sender,
      ledger,
      existing,
      dir,
      binaries,
      maxBytes: config.max_upload_bytes,
      onBytes: progress.moved,
    };
    let isWhole = false;
    const outcome = newOutcome();
    const counts = () => {
      const { done, bytes } = progress.counts();
      const { unchanged, failed } = outcome;
      const imported = Math.max(0, done - unchanged - failed);
      return { imported, unchanged, failed, encoding: checks.waiting(), bytes: Math.max(0, bytes) };
    };
    const shown = { provider: name, source: from ?? null, total: Math.min(plan.videos, limit), tenantId };
    const onServer = reportToServer(sender.call, shown, counts);
    let end: End = { ...counts(), error: null, problems: [] };
    try {
      const waits = options.wait;
      await runImport({ importing, verifier: checks, progress, atOnce: jobs, limit, waits, outcome });
      isWhole = true;
      progress.stop(true);
      const csv = `${files}.csv`;
      const { duplicates, videos } = plan;
      const report = reportOf(ledger, outcome.touched, {
        provider: name,
        videos: Math.min(videos, limit),
        unchanged: outcome.unchanged,
        csv,
        duplicates,
        error: outcome.error,
      });
      const { imported, failed, unverified: encoding, failures: problems } = report;
      end = { ...counts(), imported, failed, encoding, error: outcome.error, problems };
      await replace(`${files}-report.json`, `${JSON.stringify(report, null, 2)}\n`);
      await writeResults(sender, ledger, { files, format });
      printReport(report, json);
    } catch (error) {
      end = {
        ...(isWhole ? end : { ...end, ...counts() }),
        error: error instanceof Error ? error.message : String(error),
      };
      if (!isWhole) {
        progress.stop(false);
        await writeResults(sender, ledger, { files, format });
      }
      throw error;
    } finally {
      await onServer.end(end);
      // Incomplete downloads are for the next run.
      await rmdir(dir).catch(() => {});
    }
    if (outcome.error !== null) throw new UserError(`Not all videos were listed: ${outcome.error}.`);
    if (end.failed > 0)
      throw new UserError(`${end.failed} videos were not imported, or not completely; see the report.`);
  } finally {
    ledger.release();
    await tracer?.close();
  }
}

function sourceNameOf(given: string): ImportSourceName {
  const name = IMPORT_SOURCE_NAMES.find((each) => each === given);
  if (!name) throw new UserError(`There is no importer for ${given}; use ${IMPORT_SOURCE_NAMES.join(", ")}.`, 2);
  return name;
}

/** The provider with its credentials. Throws a UserError that names a variable that is not set. */
async function sourceOf(
  name: ImportSourceName,
  from: string | undefined,
): Promise<{ provider: Provider; source: Source }> {
  const provider = await PROVIDERS[name]();
  if (provider.argument === undefined && from !== undefined)
    throw new UserError(`vodbox import ${name} has no argument; its account is chosen by its credentials.`, 2);
  const missing = provider.required.filter((variable) => !process.env[variable]);
  const title = provider.title.replace(/^The /, "the ");
  if (missing.length > 0)
    throw new UserError(`Set ${missing.join(" and ")} in the environment to import from ${title}.`, 2);
  const names = [...provider.required, ...(provider.optional ?? [])];
  const env = Object.fromEntries(names.flatMap((each) => (process.env[each] ? [[each, process.env[each]]] : [])));
  const apiUrl = process.env.VODBOX_IMPORT_API_URL || undefined;
  if (apiUrl !== undefined && (!/^https?:\/\//.test(apiUrl) || !URL.canParse(apiUrl)))
    throw new UserError("VODBOX_IMPORT_API_URL is not a URL; use https://api.example.com, for example.", 2);
  const opened = provider.open({ from, env, apiUrl: apiUrl && withoutTrailing(apiUrl, "/") });
  return { provider, source: await opened.catch(reported) };
}

/** Counts the videos, which also checks the credentials. */
async function planned(source: Source, { title }: Provider): Promise<Plan> {
  try {
    return await planOf(source);
  } catch (error) {
    if (error instanceof ItemError && error.message.endsWith("401"))
      throw new UserError(`${title} refuses the credentials (401); check the variables of the environment.`);
    return reported(error);
  }
}

function reported(error: unknown): never {
  throw error instanceof ItemError ? new UserError(`The list of videos cannot be read: ${error.message}.`) : error;
}

/** The id of the tenant: the ledger belongs to it, whichever key is used. */
async function tenantOf({ call, patience, tenantId }: FileSender): Promise<number | undefined> {
  if (tenantId !== undefined) return tenantId;
  const [tenant] = await patience.until(() => call<{ id: number }[]>("GET", "/tenants?limit=1"));
  return tenant?.id;
}

type Results = { files: string; format: RedirectFormat | null };

async function writeResults(sender: FileSender, ledger: Ledger, { files, format }: Results): Promise<void> {
  const base = await publicUrl(sender, ledger);
  await writeCsv(`${files}.csv`, ledger.entries(), base);
  if (format === null) return;
  const extension = format === "nginx" ? "nginx.conf" : format === "caddy" ? "Caddyfile" : "csv";
  await replace(`${files}-redirects.${extension}`, await redirects(ledger.entries(), base, format));
}

/** The URL of the server for viewers, which may be another one than the import uses. */
async function publicUrl({ call, server }: FileSender, ledger: Ledger): Promise<string> {
  for (const { assetId, stage } of ledger.entries()) {
    if (stage !== "verified") continue;
    const playback = await call<{ embed_url: string }>("GET", `/playback/${assetId}`).catch(() => null);
    const base = playback?.embed_url.split("/embed/")[0];
    if (base) return base;
    break;
  }
  return server;
}

function fieldsOf({ collection, playbackPolicy, encodingProfile }: Options): Record<string, unknown> {
  requirePlaybackPolicy(playbackPolicy);
  if (collection !== undefined && !/^[1-9]\d{0,14}$/.test(collection))
    throw new UserError("--collection must be the id of a collection.", 2);
  return {
    ...(collection !== undefined && { collection_id: Number(collection) }),
    ...(playbackPolicy !== undefined && { playback_policy: playbackPolicy }),
    ...(encodingProfile !== undefined && { encoding_profile: encodingProfile }),
  };
}

function formatOf(text: string | undefined): RedirectFormat | null {
  if (text === undefined) return null;
  const format = REDIRECT_FORMATS.find((each) => each === text);
  if (!format) throw new UserError(`--redirects must be ${REDIRECT_FORMATS.join(", ")}.`, 2);
  return format;
}

function whole(name: string, text: string | undefined, otherwise: number, most = 1_000_000): number {
  if (text === undefined) return otherwise;
  const number = Number(text);
  if (!/^\d{1,7}$/.test(text) || number < 1 || number > most)
    throw new UserError(`${name} must be a whole number from 1 to ${most}.`, 2);
  return number;
}
