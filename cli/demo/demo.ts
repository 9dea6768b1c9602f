import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Command } from "commander";
import { sleep, UserError } from "#lib/base";
import type { Config } from "#platform/config/load.ts";
import { createLog } from "#src/log.ts";
import { serve } from "#src/serve.ts";
import { isLocked } from "#storage/db/lock.ts";
import { type Api, tenantApi, uploadFile } from "../api.ts";
import { type Admin, adminOf, connect, serverUrl } from "../connect.ts";
import { line } from "../print.ts";
import { showProgress } from "../progress.ts";
import { settingsOf } from "../settings.ts";
import { onStopSignal } from "../signals.ts";
import { makeClip } from "./clip.ts";

type Options = { server?: string; seconds: string; once?: boolean };
type Asset = {
  id: number;
  external_id: string;
  playback_status: string;
  progress: number;
  stage: string | null;
  error: { message: string } | null;
};
type Target = { address: string; baseUrl: string; admin: Admin; stop: (() => Promise<void>) | null };

const POLL_MS = 250;
const SLUG = "demo";

/** From nothing to a playing video. A server that was started for it runs until it is stopped. */
export async function demoCommand(command: Command): Promise<void> {
  const options = command.opts<Options>();
  const seconds = Number(options.seconds);
  if (!(seconds >= 1 && seconds <= 600)) throw new UserError("--seconds must be a number from 1 to 600.", 2);
  const config = settingsOf(command);
  const target = await findServer(config, options.server);
  if (target.stop) onStopSignal(() => stopAndExit(target));
  try {
    await showVideo(config, target, { seconds, isWhole: Boolean(target.stop && options.once) });
  } catch (error) {
    await target.stop?.();
    throw error;
  } finally {
    await target.admin.close();
  }
  if (target.stop && options.once) await stopAndExit(target);
  if (target.stop) line("The server keeps running; press Ctrl-C to stop it.");
}

/** With `isWhole` the video is encoded completely before it is shown: the server stops then. */
async function showVideo(
  config: Config,
  target: Target,
  { seconds, isWhole }: { seconds: number; isWhole: boolean },
): Promise<void> {
  const api = await tenantWithKey(target);
  const folder = await mkdtemp(join(tmpdir(), "vodbox-demo-"));
  try {
    const clip = join(folder, "vodbox-demo.mp4");
    await makeClip(config, { folder, clip, seconds });
    const sending = showProgress("Uploading  ");
    const { asset_id } = await uploadFile(
      api,
      clip,
      { title: "vodbox demo", playback_policy: "public", content_type: "video/mp4", early_playback: !isWhole },
      sending.update,
    );
    sending.done();
    const asset = await untilReady(api, asset_id);
    const address = `${target.baseUrl}/watch/${asset.external_id}`;
    if (isWhole) line(`\nReady. The server stops now. After \`vodbox serve\` the video plays at\n\n  ${address}\n`);
    else line(`\nReady. Watch it:\n\n  ${address}\n`);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function stopAndExit({ stop }: Target): Promise<void> {
  await stop?.();
  process.exit(process.exitCode ?? 0);
}

/** The given server, else the one that holds the data directory, else one in this process. */
async function findServer(config: Config, named: string | undefined): Promise<Target> {
  if (named !== undefined) {
    const address = serverUrl(named);
    return { address, baseUrl: address, admin: adminOf(config, address), stop: null };
  }
  if (isLocked(config.data_dir)) {
    const admin = await connect(config, { isLocal: true });
    return { address: admin.address, baseUrl: config.base_url ?? admin.address, admin, stop: null };
  }
  // Next to the progress bars, only errors are of interest.
  const quiet: Config = config.log_level === "info" ? { ...config, log_level: "warn" } : config;
  const running = await serve(quiet, { log: await createLog(quiet) });
  line(`vodbox ready on ${running.baseUrl}`);
  return {
    address: running.address,
    baseUrl: running.baseUrl,
    admin: adminOf(config, running.address),
    stop: running.stop,
  };
}

/** The demo's own tenant, created by the first demo, with a new key. */
async function tenantWithKey({ admin, address }: Target): Promise<Api> {
  const tenants = await admin.call<{ id: number; slug: string }[]>("GET", "/api/v1/tenants");
  const tenant =
    tenants.find(({ slug }) => slug === SLUG) ??
    (await admin.call<{ id: number }>("POST", "/api/v1/admin/tenants", { name: "Demo", slug: SLUG }));
  const scopes = ["assets:read", "assets:write", "playback:read"];
  const { token } = await admin.call<{ token: string }>("POST", "/api/v1/api_keys", {
    tenant_id: tenant.id,
    name: "vodbox demo",
    scopes,
  });
  return tenantApi(address, token);
}

async function untilReady(api: Api, id: number): Promise<Asset> {
  const progress = showProgress("Transcoding");
  for (;;) {
    const asset = await api<Asset>("GET", `/api/v1/assets/${id}`);
    if (asset.playback_status === "ready") {
      progress.done();
      return asset;
    }
    if (asset.playback_status === "errored")
      throw new UserError(`Transcoding failed: ${asset.error?.message ?? "unknown reason"}`);
    progress.update(asset.progress / 100, asset.stage ?? "");
    await sleep(POLL_MS);
  }
}
