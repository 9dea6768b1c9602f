import type { Command } from "commander";
import { settingsOf, wantsJson } from "../settings.ts";
import type { CommandContext } from "./command-context.ts";

type Work = (ask: CommandContext<never>) => Promise<void>;
type Loader = () => Promise<Record<string, unknown>>;

/** Adds a command. `load` imports its module on first use; `name` is the exported function. */
export function operation(parent: Command, usage: string, about: string, load: Loader, name: string): Command {
  return parent
    .command(usage)
    .description(about)
    .action(async (...all: unknown[]) => {
      const command = all.at(-1) as Command;
      const work = (await load())[name] as Work;
      const { connect } = await import("../connect.ts");
      const admin = await connect(settingsOf(command));
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

export function addAdmin(program: Command): void {
  const admin = program.command("admin").description("administer a server");

  const tenant = admin.command("tenant").description("manage tenants");
  const tenants = () => import("./tenant.ts");
  operation(tenant, "create", "create a tenant", tenants, "create")
    .requiredOption("--name <N>", "name")
    .requiredOption("--slug <S>", "lower-case name for URLs and commands")
    .option("--plan <PLAN>", "free, starter, pro or enterprise", "pro")
    .option("--playback-policy <P>", "default of new assets: public or signed", "signed")
    .option("--allowed-origins <LIST>", "origins that may embed the player, comma-separated; * allows all");
  operation(tenant, "list", "list tenants", tenants, "list");
  operation(tenant, "show <tenant>", "show a tenant, by id or slug", tenants, "show");
  operation(tenant, "update <tenant>", "update a tenant", tenants, "update")
    .option("--name <N>", "name")
    .option("--plan <PLAN>", "free, starter, pro or enterprise")
    .option("--playback-policy <P>", "public or signed")
    .option("--allowed-origins <LIST>", "origins that may embed the player, comma-separated; * allows all");
  operation(
    tenant,
    "suspend <tenant>",
    "suspend a tenant: its API keys and playback stop working",
    tenants,
    "suspend",
  ).option("--undo", "lift the suspension");

  const key = admin.command("key").description("manage API keys");
  const keys = () => import("./key.ts");
  operation(key, "issue", "create an API key; its token is printed once", keys, "issue")
    .requiredOption("--tenant <T>", "tenant, by id or slug")
    .option("--name <N>", "name", "SDK key")
    .option("--scopes <LIST>", "scopes, comma-separated", "assets:read")
    .option("--expires-in <TIME>", "lifetime, such as 30d, 12h or 45m");
  operation(key, "list", "list a tenant's API keys", keys, "list").requiredOption(
    "--tenant <T>",
    "tenant, by id or slug",
  );
  operation(key, "revoke <id>", "revoke an API key", keys, "revoke");

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

  const user = admin.command("user").description("manage users, who can sign in and redeem device tokens");
  const users = () => import("./user.ts");
  operation(user, "create", "create a user with a password", users, "create")
    .requiredOption("--tenant <T>", "tenant, by id or slug")
    .requiredOption("--email <E>", "e-mail address")
    .option("--password-stdin", "read the password from standard input instead of prompting");
  operation(user, "list", "list users", users, "list").option("--tenant <T>", "tenant, by id or slug");
  operation(user, "passwd <user>", "change the password of a user, by id or email", users, "passwd").option(
    "--password-stdin",
    "read the password from standard input instead of prompting",
  );
  operation(user, "delete <user>", "delete a user and revoke their device tokens", users, "remove");

  const device = admin.command("device").description("manage desktop uploaders");
  operation(
    device,
    "pair",
    "print a one-time pairing code for a device",
    () => import("./device.ts"),
    "pair",
  ).requiredOption("--tenant <T>", "tenant, by id or slug");

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

  const job = admin.command("job").description("manage transcoding jobs");
  const jobs = () => import("./job.ts");
  operation(job, "list", "list jobs, newest first", jobs, "list")
    .option("--state <S>", "queued, running, completed, failed or canceled")
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

  operation(admin, "usage", "show the usage and estimated cost of a month", () => import("./usage.ts"), "usage")
    .option("--tenant <T>", "tenant, by id or slug")
    .option("--month <M>", "month in UTC, such as 2026-11; default: the current month");
  const live = admin.command("live").description("manage live channels");
  const channels = () => import("./live.ts");
  operation(live, "create", "create a channel; its stream key is printed once", channels, "create")
    .requiredOption("--tenant <T>", "tenant, by id or slug")
    .requiredOption("--channel <C>", "channel name (a-z 0-9 _ -); its path at the gateway is live/<C>")
    .option("--name <N>", "display name; default: the channel name")
    .option("--playback-policy <P>", "public or signed; default: the tenant's")
    .option("--publisher <USER>", "the only user name that is allowed to publish");
  operation(live, "list", "list channels, newest first", channels, "list").option(
    "--tenant <T>",
    "tenant, by id or slug",
  );
  operation(live, "rotate <channel>", "rotate the stream key of a channel, by name or id", channels, "rotate");
  operation(live, "revoke <channel>", "revoke a channel: no more publishing or playback", channels, "revoke");
  operation(live, "token <channel>", "print a playback token for a channel", channels, "token").option(
    "--expires-in <TIME>",
    "lifetime, such as 12h or 45m; default: 1h",
  );

  const token = admin.command("token").description("manage the admin, worker and live gateway tokens");
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
    .requiredOption("--to <STORAGE>", "local or s3")
    .option("--quick", "verify sizes only instead of reading all objects back")
    .option("--dry-run", "only print how much there is to copy")
    .option("--remove-old", "delete the old copies when the migration is complete");
  operation(storage, "status", "show the storage in use and the progress of a migration", storages, "status");
  operation(storage, "pause", "pause a migration; `migrate` resumes it", storages, "pause");
  operation(storage, "cancel", "cancel a migration before it switches storage", storages, "cancel");
  operation(storage, "clean", "delete the copies that a migration left behind", storages, "clean");

  operation(admin, "audit", "show the audit log, newest first", () => import("./audit.ts"), "audit")
    .option("--tenant <T>", "tenant, by id or slug")
    .option("--since <TIME>", "only entries after this time: 2h, 7d or 2026-11-20T09:30:00Z")
    .option("--limit <N>", "maximum number of entries, up to 500", "100");
  operation(
    admin,
    "backup <file>",
    "write database, secrets and optionally objects to a tar archive; works while serving",
    () => import("./backup.ts"),
    "backup",
  )
    .option("--objects", "include the objects; by default only a list of them is written")
    .option("--without-secrets", "leave out tokens and the signing secret; they are replaced by a restore")
    .option("--force", "overwrite an existing file");
  admin
    .command("restore <file>")
    .description("restore an archive into an empty data directory")
    .option("--check", "only verify the archive")
    .action(async (file: string, _, command: Command) => (await import("./backup.ts")).restore(file, command));
  admin
    .command("config")
    .description("show all settings with value and origin")
    .action(async (_, command: Command) => (await import("./config.ts")).show(command));
  admin
    .command("doctor")
    .description("check database, objects, ffmpeg, clock, disk and permissions")
    .option("--fix", "fix what can be fixed; without it nothing is changed")
    .option("--force", "with --fix: move unreferenced objects to trash/ even if they are more than half of all objects")
    .action(async (_, command: Command) => (await import("./doctor.ts")).doctor(command));
}

const withFilters = (command: Command): Command =>
  command
    .option("--tenant <T>", "tenant, by id or slug")
    .option("--endpoint <ID>", "endpoint id")
    .option("--event <NAME>", "event type, such as video.asset.ready")
    .option("--status <S>", "pending, delivered, failed or skipped")
    .option("--since <TIME>", "events after this time: 2h, 7d or 2026-11-20T09:30:00Z")
    .option("--until <TIME>", "events before this time");
