import { type Command, Option } from "commander";
import { alternatives } from "#lib/base";
import {
  JOB_STATUSES,
  PLANS,
  PLAYBACK_POLICIES,
  PLAYBACK_STATUSES,
  ROLES,
  STORE_KINDS,
  UPLOAD_STATUSES,
  WEBHOOK_DELIVERY_STATUSES,
} from "#model/enums.ts";
import type { ConnectOptions } from "../connect.ts";
import { settingsOf, wantsJson } from "../settings.ts";
import type { CommandContext } from "./command-context.ts";
import { withStreams } from "./live-options.ts";

/** The admin token comes from VODBOX_ADMIN_TOKEN, because arguments are visible to all users of the machine. */
const SERVER = ["--server <URL>", "URL of a server, with its token in VODBOX_ADMIN_TOKEN (VODBOX_SERVER)"] as const;

type Work = (ask: CommandContext<never>) => Promise<void>;
type Loader = () => Promise<Record<string, unknown>>;

type Where = Pick<ConnectOptions, "isLocal" | "mayCreate">;

/**
 * Adds a command. `load` imports its module on first use; `name` is the exported function. Unless it is local, it also
 * works on a server that is named with --server or VODBOX_SERVER.
 */
export function operation(
  parent: Command,
  usage: string,
  about: string,
  load: Loader,
  name: string,
  where: Where = {},
): Command {
  const command = parent.command(usage).description(about);
  if (!where.isLocal) command.option(...SERVER);
  return command.action(async (...all: unknown[]) => {
    const command = all.at(-1) as Command;
    const work = (await load())[name] as Work;
    const { connect } = await import("../connect.ts");
    const admin = await connect(settingsOf(command), { ...where, ...command.opts<{ server?: string }>() });
    try {
      await work({
        admin,
        json: wantsJson(command),
        options: command.opts(),
        args: command.args,
        command,
      } as CommandContext<never>);
    } finally {
      await admin.close();
    }
  });
}

/** The commands of an operator, one function for each group. */
export function addAdmin(program: Command): void {
  const admin = program.command("admin").description("administer a server");
  addTenants(admin);
  addKeys(admin);
  addSigningKeys(admin);
  addUsers(admin);
  addDevices(admin);
  addWebhooks(admin);
  addAssets(admin);
  addJobs(admin);
  addUsage(admin);
  addViewers(admin);
  addLive(admin);
  addTokens(admin);
  addStorage(admin);
  addServer(admin);
}

function addTenants(admin: Command): void {
  const tenant = admin.command("tenant").description("manage tenants");
  const tenants = () => import("./tenant.ts");
  operation(tenant, "create", "create a tenant", tenants, "create", { mayCreate: true })
    .requiredOption("--name <N>", "name")
    .requiredOption("--slug <S>", "lower-case name for URLs and commands")
    .option("--plan <PLAN>", alternatives(PLANS), "pro")
    .option("--playback-policy <P>", `default of new assets: ${alternatives(PLAYBACK_POLICIES)}`, "signed")
    .option("--allowed-origins <LIST>", "origins that may embed the player, comma-separated; * allows all");
  operation(tenant, "list", "list tenants", tenants, "list");
  operation(tenant, "show <tenant>", "show a tenant, by id or slug", tenants, "show");
  operation(tenant, "update <tenant>", "update a tenant", tenants, "update")
    .option("--name <N>", "name")
    .option("--plan <PLAN>", alternatives(PLANS))
    .option("--playback-policy <P>", alternatives(PLAYBACK_POLICIES))
    .option("--allowed-origins <LIST>", "origins that may embed the player, comma-separated; * allows all")
    .option("--encoding-profile <NAME>", "encoding profile of assets that name none; or default")
    .option("--language <TAG>", "language of captions where none is detected, such as de; or none")
    .option("--early-playback <on|off|default>", "videos play before they are encoded; default: the server's setting")
    .option("--delete-sources-after-days <N>", "delete sources N days after their asset became ready; or never")
    .option("--delete-analytics-after-days <N>", "delete analytics after N days; or never")
    .option("--accent-color <COLOR>", "color of the player, such as #3b6cf6; or default")
    .option("--show-title <on|off>", "show titles in the player and on watch pages")
    .option("--allow-download <on|off>", "viewers may download videos");
  operation(tenant, "logo <tenant> [file]", "set the logo of a tenant's player, a PNG file", tenants, "logo").option(
    "--remove",
    "remove the logo",
  );
  operation(
    tenant,
    "suspend <tenant>",
    "suspend a tenant: its API keys and playback stop working",
    tenants,
    "suspend",
  ).option("--undo", "lift the suspension");
  operation(
    tenant,
    "delete <tenant>",
    "delete a tenant with all its assets, objects, keys and users",
    tenants,
    "remove",
  ).requiredOption("--confirm <SLUG>", "the tenant's slug, to confirm the deletion");
}

function addKeys(admin: Command): void {
  const key = admin.command("key").description("manage API keys");
  const keys = () => import("./key.ts");
  operation(key, "issue", "create an API key; its token is printed once", keys, "issue")
    // As other objects are created.
    .alias("create")
    .requiredOption("--tenant <T>", "tenant, by id or slug")
    .option("--name <N>", "name", "SDK key")
    .option("--scopes <LIST>", "scopes, comma-separated", "assets:read")
    .option("--expires-in <TIME>", "lifetime, such as 30d, 12h or 45m");
  operation(key, "list", "list a tenant's API keys", keys, "list").requiredOption(
    "--tenant <T>",
    "tenant, by id or slug",
  );
  operation(
    key,
    "rotate <id>",
    "create a key in the place of another one; its token is printed once",
    keys,
    "rotate",
  ).option("--grace-hours <N>", "how long the old key still works; 0: it is revoked", "24");
  operation(key, "revoke <id>", "revoke an API key", keys, "revoke");
}

function addSigningKeys(admin: Command): void {
  const signing = admin
    .command("signing-key")
    .description("manage keys with which tenants sign playback tokens themselves");
  const signingKeys = () => import("./signing-key.ts");
  operation(
    signing,
    "create",
    "generate a key pair (the private key is printed once), or register a public key",
    signingKeys,
    "create",
  )
    .requiredOption("--tenant <T>", "tenant, by id or slug")
    .option("--name <N>", "name", "Signing key")
    .option("--algorithm <A>", "RS256 or EdDSA; default: the type of the public key, else RS256")
    .option("--public-key <FILE>", "PEM file of an existing public key to register");
  operation(signing, "list", "list a tenant's signing keys", signingKeys, "list").requiredOption(
    "--tenant <T>",
    "tenant, by id or slug",
  );
  operation(signing, "revoke <id>", "revoke a signing key and all tokens that it signed", signingKeys, "revoke");
}

function addUsers(admin: Command): void {
  const user = admin.command("user").description("manage users, who can sign in and redeem device tokens");
  const users = () => import("./user.ts");
  operation(user, "create", "create a user with a password", users, "create")
    .requiredOption("--tenant <T>", "tenant, by id or slug")
    .requiredOption("--email <E>", "e-mail address")
    .option("--name <NAME>", "name of the person")
    .addOption(new Option("--role <ROLE>", "what the user may do").choices(ROLES).default("admin"))
    .option("--password-stdin", "read the password from standard input instead of prompting");
  operation(user, "list", "list users", users, "list").option("--tenant <T>", "tenant, by id or slug");
  operation(user, "invite <email>", "print the address with which a person becomes a user", users, "invite")
    .requiredOption("--tenant <T>", "tenant, by id or slug")
    .addOption(new Option("--role <ROLE>", "what the user may do").choices(ROLES).makeOptionMandatory());
  operation(user, "role <user> <role>", `change the role of a user: ${alternatives(ROLES)}`, users, "role");
  operation(user, "passwd <user>", "change the password of a user, by id or email", users, "passwd").option(
    "--password-stdin",
    "read the password from standard input instead of prompting",
  );
  operation(user, "reset-link <user>", "print the link with which a user sets a new password", users, "resetLink");
  operation(user, "totp-off <user>", "switch the second factor of a user off", users, "totpOff");
  operation(user, "delete <user>", "delete a user and revoke their device tokens", users, "remove");
}

function addDevices(admin: Command): void {
  const device = admin.command("device").description("manage desktop uploaders");
  operation(
    device,
    "pair",
    "print a one-time pairing code for a device",
    () => import("./device.ts"),
    "pair",
  ).requiredOption("--tenant <T>", "tenant, by id or slug");
}

function addWebhooks(admin: Command): void {
  const webhook = admin.command("webhook").description("manage webhook endpoints and deliveries");
  const webhooks = () => import("./webhook.ts");
  operation(webhook, "create", "create an endpoint; its signing secret is printed once", webhooks, "create")
    .requiredOption("--tenant <T>", "tenant, by id or slug")
    .requiredOption("--url <U>", "https URL")
    .option("--events <LIST>", "event types, comma-separated; default: all")
    .option("--description <D>", "description");
  operation(webhook, "list", "list endpoints", webhooks, "list").option("--tenant <T>", "tenant, by id or slug");
  withFilters(operation(webhook, "deliveries", "list deliveries, newest first", webhooks, "deliveries")).option(
    "--limit <N>",
    "maximum number of entries, up to 500",
    "100",
  );
  withFilters(
    operation(webhook, "replay [id...]", "resend deliveries by id (whd_… or evt_…) or by filter", webhooks, "replay"),
  )
    .option("--failed", "deliveries that failed permanently; same as --status failed")
    .option("--dry-run", "only count the matching deliveries");
  operation(webhook, "test <endpoint>", "send a test event to an endpoint", webhooks, "test");
}

function addAssets(admin: Command): void {
  const asset = admin.command("asset").description("manage assets");
  const assets = () => import("./asset.ts");
  operation(asset, "list", "list assets, newest first, up to 1,000", assets, "list")
    .option("--tenant <T>", "tenant, by id or slug")
    .option("--status <S>", alternatives(PLAYBACK_STATUSES));
  operation(asset, "search <words...>", "search titles, descriptions, captions and chapters", assets, "search")
    .requiredOption("--tenant <T>", "tenant, by id or slug")
    .option("--language <TAG>", "only captions in this language, such as de")
    .option("--limit <N>", "results, at most 500", "20");
  operation(asset, "show <id>", "show an asset", assets, "show");
  operation(asset, "retry <id>", "encode an errored asset again", assets, "retry");
  operation(asset, "policy <id> <policy>", "publish an asset (public) or unpublish it (signed)", assets, "policy");
  operation(asset, "delete <id...>", "delete assets with their media and sources", assets, "remove").option(
    "--yes",
    "confirm the deletion",
  );
  const upload = admin.command("upload").description("show uploads");
  operation(upload, "list", "list uploads, newest first, up to 1,000", () => import("./upload.ts"), "list")
    .option("--tenant <T>", "tenant, by id or slug")
    .option("--status <S>", alternatives(UPLOAD_STATUSES));
}

function addJobs(admin: Command): void {
  const job = admin.command("job").description("manage transcoding jobs");
  const jobs = () => import("./job.ts");
  operation(job, "list", "list jobs, newest first", jobs, "list")
    .option("--state <S>", alternatives(JOB_STATUSES))
    .option("--tenant <T>", "tenant, by id or slug");
  operation(job, "show <id>", "show a job, with the end of the ffmpeg log if it failed", jobs, "show").option(
    "--follow",
    "show the progress until the job ends",
  );
  operation(job, "prioritize <id>", "change the priority of a job", jobs, "prioritize").option(
    "--priority <N>",
    "-10 to 10 within the tenant's queue; 11 to 100 ahead of all tenants",
    "100",
  );
  operation(job, "retry <id>", "retry a failed or canceled job", jobs, "retry");
  operation(job, "cancel <id>", "cancel a queued or running job", jobs, "cancel");
}

function addUsage(admin: Command): void {
  operation(admin, "usage", "show the usage and estimated cost of a month", () => import("./usage.ts"), "usage")
    .option("--tenant <T>", "tenant, by id or slug")
    .option("--month <M>", "month in UTC, such as 2026-11; default: the current month");
}

function addViewers(admin: Command): void {
  const viewer = admin.command("viewer").description("export or erase what is stored of a person who watches");
  const viewers = () => import("./viewer.ts");
  operation(
    viewer,
    "export <id>",
    "print what is stored of a viewer, by viewer_id",
    viewers,
    "exportViewer",
  ).requiredOption("--tenant <T>", "tenant, by id or slug");
  operation(viewer, "erase <id>", "erase what is stored of a viewer, by viewer_id; sums stay", viewers, "erase")
    .requiredOption("--tenant <T>", "tenant, by id or slug")
    .option("--yes", "confirm the erasure");
}

function addLive(admin: Command): void {
  const live = admin.command("live").description("manage live channels");
  const channels = () => import("./live.ts");
  const create = operation(live, "create", "create a channel; its stream key is printed once", channels, "create")
    .requiredOption("--tenant <T>", "tenant, by id or slug")
    .requiredOption("--channel <C>", "channel name (a-z 0-9 _ -); its path at the gateway is live/<C>")
    .option("--name <N>", "display name; default: the channel name")
    .option("--playback-policy <P>", `${alternatives(PLAYBACK_POLICIES)}; default: the tenant's`)
    .option("--publisher <USER>", "the only user name that is allowed to publish");
  withStreams(create);
  operation(live, "show <channel>", "show a channel, by name or id", channels, "show");
  const update = operation(live, "update <channel>", "update a channel, by name or id", channels, "update")
    .option("--name <N>", "display name")
    .option("--playback-policy <P>", alternatives(PLAYBACK_POLICIES))
    .option("--publisher <USER>", 'the only user name that is allowed to publish; "" allows any');
  withStreams(update);
  operation(live, "list", "list channels, newest first", channels, "list").option(
    "--tenant <T>",
    "tenant, by id or slug",
  );
  operation(live, "rotate <channel>", "rotate the stream key of a channel, by name or id", channels, "rotate");
  operation(live, "end <channel>", "end the running stream of a channel, by name or id", channels, "end");
  operation(live, "revoke <channel>", "revoke a channel: no more publishing or playback", channels, "revoke");
  operation(live, "token <channel>", "print a playback token for a channel", channels, "token").option(
    "--expires-in <TIME>",
    "lifetime, such as 12h or 45m; default: 1h",
  );
  addTargets(live);
}

/** Other servers to which the streams of a channel are sent. */
function addTargets(live: Command): void {
  const targets = () => import("./live-target.ts");
  const withKey = (command: Command) =>
    command
      .option("--stream-key-stdin", "read the stream key of the other server from standard input")
      .option("--name <N>", "display name")
      .option("--enabled <on|off>", "whether streams are sent to it");
  operation(live, "targets <channel>", "list the simulcast targets of a channel", targets, "list");
  const add = operation(live, "add-target <channel>", "send a channel to another RTMP server too", targets, "add");
  withKey(add.requiredOption("--url <URL>", "rtmp or rtmps URL; without --stream-key-stdin its end is the stream key"));
  const update = operation(live, "update-target <channel> <target>", "update a simulcast target", targets, "update");
  withKey(update.option("--url <URL>", "another URL, with its stream key"));
  operation(live, "remove-target <channel> <target>", "delete a simulcast target", targets, "remove");
}

function addTokens(admin: Command): void {
  const token = admin.command("token").description("manage the admin, worker, live gateway and metrics tokens");
  token
    .command("show [name]")
    .description("print one token, or all")
    .action(async (name: string | undefined, _, command: Command) => (await import("./token.ts")).show(name, command));
  operation(
    token,
    "rotate <name>",
    "rotate a token; the old one stops working at once",
    () => import("./token.ts"),
    "rotate",
  );
}

function addStorage(admin: Command): void {
  const storage = admin.command("storage").description("manage object storage");
  const storages = () => import("./storage.ts");
  operation(storage, "check", "check credentials, bucket, CORS and clock", storages, "check");
  operation(
    storage,
    "migrate",
    "copy all objects to the other storage while serving, verify, then switch; run again to resume",
    storages,
    "migrate",
  )
    .requiredOption("--to <STORAGE>", alternatives(STORE_KINDS))
    .option("--quick", "verify sizes only instead of reading all objects back")
    .option("--dry-run", "only print how much there is to copy")
    .option("--remove-old", "delete the old copies when the migration is complete");
  operation(storage, "status", "show the storage in use and the progress of a migration", storages, "status");
  operation(storage, "pause", "pause a migration; `migrate` resumes it", storages, "pause");
  operation(storage, "cancel", "cancel a migration before it switches storage", storages, "cancel");
  operation(storage, "clean", "delete the copies that a migration left behind", storages, "clean");
}

function addServer(admin: Command): void {
  operation(admin, "audit", "show the audit log, newest first", () => import("./audit.ts"), "audit")
    .option("--tenant <T>", "tenant, by id or slug")
    .option("--since <TIME>", "only entries after this time: 2h, 7d or 2026-11-20T09:30:00Z")
    .option("--actor <WHO>", "e-mail address of a user, key:ID or operator")
    .option("--action <ACTION>", "operation, such as update_asset")
    .option("--limit <N>", "maximum number of entries, up to 500", "100");
  operation(
    admin,
    "backup <file>",
    "write database, secrets and optionally objects to a tar archive; works while serving",
    () => import("./backup.ts"),
    "backup",
    { isLocal: true },
  )
    .option("--objects", "include the objects; by default only a list of them is written")
    .option("--without-secrets", "leave out tokens and the signing secret; they are replaced by a restore")
    .option("--force", "overwrite an existing file");
  admin
    .command("restore [file]")
    .description("restore an archive, or a replica with --from, into an empty data directory")
    .option("--check", "only verify the archive")
    .option("--from <REPLICA>", "restore from a replica: s3://BUCKET/PREFIX or a directory")
    .option("--at <TIME>", "with --from: as it was then: 2026-11-20T09:30:00Z, or 2h ago; default: the newest state")
    .action(async (file: string | undefined, _, command: Command) =>
      command.opts().from === undefined
        ? (await import("./backup.ts")).restore(file, command)
        : (await import("./replica.ts")).restore(file, command),
    );
  admin
    .command("replica")
    .description("continuous backup of the database")
    .command("status")
    .description("show the times that the replica can be restored to, and its lag")
    .option("--from <REPLICA>", "another replica than that of the settings: s3://BUCKET/PREFIX or a directory")
    .action(async (_, command: Command) => (await import("./replica.ts")).status(command));
  admin
    .command("config")
    .description("show all settings with value and origin")
    .action(async (_, command: Command) => (await import("./config.ts")).show(command));
  admin
    .command("doctor")
    .description("check database, objects, ffmpeg, clock, disk and permissions")
    .option(...SERVER)
    .option("--fix", "fix what can be fixed, on the server's machine; without it nothing is changed")
    .option("--force", "with --fix: move unreferenced objects to trash/ even if they are more than half of all objects")
    .action(async (_, command: Command) => (await import("./doctor.ts")).doctor(command));
}

const withFilters = (command: Command): Command =>
  command
    .option("--tenant <T>", "tenant, by id or slug")
    .option("--endpoint <ID>", "endpoint id")
    .option("--event <NAME>", "event type, such as video.asset.ready")
    .option("--status <S>", alternatives(WEBHOOK_DELIVERY_STATUSES))
    .option("--since <TIME>", "events after this time: 2h, 7d or 2026-11-20T09:30:00Z")
    .option("--until <TIME>", "events before this time");
