import type { Command } from "commander";
import { settingsOf, wantsJson } from "../settings.ts";
import type { CommandContext } from "./command-context.ts";

type Work = (ask: CommandContext<never>) => Promise<void>;
type Loader = () => Promise<Record<string, unknown>>;

/** Adds a command whose work stands in the module that `load` gives, under `name`. */
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
  const admin = program.command("admin").description("the operator's hand");

  const tenant = admin.command("tenant").description("tenants, their plan and playback policy");
  const tenants = () => import("./tenant.ts");
  operation(tenant, "create", "create a tenant", tenants, "create")
    .requiredOption("--name <N>", "name")
    .requiredOption("--slug <S>", "lower-case name for addresses and commands")
    .option("--plan <PLAN>", "free, starter, pro or enterprise", "pro")
    .option("--playback-policy <P>", "public or signed: what new assets get", "signed")
    .option("--allowed-origins <LIST>", "sites that may show the embed page in a frame, with commas; * is any");
  operation(tenant, "list", "list tenants", tenants, "list");
  operation(tenant, "show <tenant>", "show a tenant, by id or slug", tenants, "show");
  operation(tenant, "update <tenant>", "change a tenant", tenants, "update")
    .option("--name <N>", "name")
    .option("--plan <PLAN>", "free, starter, pro or enterprise")
    .option("--playback-policy <P>", "public or signed")
    .option("--allowed-origins <LIST>", "sites that may show the embed page in a frame, with commas; * is any");
  operation(tenant, "suspend <tenant>", "refuse all keys of a tenant", tenants, "suspend").option(
    "--undo",
    "let its keys work again",
  );

  const key = admin.command("key").description("API keys");
  const keys = () => import("./key.ts");
  operation(key, "issue", "issue a key; its token is printed once", keys, "issue")
    .requiredOption("--tenant <T>", "tenant, by id or slug")
    .option("--name <N>", "name", "SDK key")
    .option("--scopes <LIST>", "scopes, joined by commas", "assets:read")
    .option("--expires-in <TIME>", "such as 30d, 12h, 45m");
  operation(key, "list", "list the keys of a tenant", keys, "list").requiredOption(
    "--tenant <T>",
    "tenant, by id or slug",
  );
  operation(key, "revoke <id>", "revoke a key", keys, "revoke");

  const signing = admin.command("signing-key").description("keys that tenants sign playback tokens with themselves");
  const signingKeys = () => import("./signing-key.ts");
  operation(
    signing,
    "create",
    "make a pair and print its private half once, or register a public key",
    signingKeys,
    "create",
  )
    .requiredOption("--tenant <T>", "tenant, by id or slug")
    .option("--name <N>", "name", "Signing key")
    .option("--algorithm <A>", "RS256 or EdDSA; RS256 unless the public key is of the other kind")
    .option("--public-key <FILE>", "PEM file of a public key whose private half stays with the tenant");
  operation(signing, "list", "list the signing keys of a tenant", signingKeys, "list").requiredOption(
    "--tenant <T>",
    "tenant, by id or slug",
  );
  operation(
    signing,
    "revoke <id>",
    "revoke a signing key, and with it all tokens that it signed",
    signingKeys,
    "revoke",
  );

  const user = admin.command("user").description("people who may redeem device tokens");
  const users = () => import("./user.ts");
  operation(user, "create", "let a person in, with a password", users, "create")
    .requiredOption("--tenant <T>", "tenant, by id or slug")
    .requiredOption("--email <E>", "e-mail address")
    .option("--password-stdin", "read the password from standard input instead of asking for it");
  operation(user, "list", "list people", users, "list").option("--tenant <T>", "tenant, by id or slug");
  operation(user, "passwd <user>", "give a person, by id or address, another password", users, "passwd").option(
    "--password-stdin",
    "read the password from standard input instead of asking for it",
  );
  operation(user, "delete <user>", "remove a person and revoke their devices", users, "remove");

  const device = admin.command("device").description("desktop uploaders");
  operation(device, "pair", "print a pairing code for one device", () => import("./device.ts"), "pair").requiredOption(
    "--tenant <T>",
    "tenant, by id or slug",
  );

  const webhook = admin.command("webhook").description("endpoints that are told of events, and what was sent to them");
  const webhooks = () => import("./webhook.ts");
  operation(webhook, "create", "register an endpoint; its secret is printed once", webhooks, "create")
    .requiredOption("--tenant <T>", "tenant, by id or slug")
    .requiredOption("--url <U>", "https address")
    .option("--events <LIST>", "names of events, joined by commas; all unless told")
    .option("--description <D>", "a note");
  operation(webhook, "list", "list endpoints", webhooks, "list").option("--tenant <T>", "tenant, by id or slug");
  withFilters(operation(webhook, "deliveries", "list deliveries, newest first", webhooks, "deliveries")).option(
    "--limit <N>",
    "at most so many, up to 500",
    "100",
  );
  withFilters(
    operation(
      webhook,
      "replay [id...]",
      "send deliveries again: by whd_… or evt_… id, or by filter",
      webhooks,
      "replay",
    ),
  )
    .option("--failed", "those that failed for good; the same as --status failed")
    .option("--dry-run", "only tell how many there are");
  operation(webhook, "test <endpoint>", "send a test event to an endpoint", webhooks, "test");

  const job = admin.command("job").description("transcoding jobs");
  const jobs = () => import("./job.ts");
  operation(job, "list", "list jobs, newest first", jobs, "list")
    .option("--state <S>", "queued, running, completed, failed or canceled")
    .option("--tenant <T>", "tenant, by id or slug");
  operation(job, "show <id>", "show a job, and the last that ffmpeg said when it failed", jobs, "show").option(
    "--follow",
    "show its progress until it ends",
  );
  operation(job, "prioritize <id>", "change a job's place in the queue", jobs, "prioritize").option(
    "--priority <N>",
    "-10 to 10 among its tenant's jobs; above that before everybody's, up to 100",
    "100",
  );
  operation(job, "retry <id>", "queue a failed or canceled job again", jobs, "retry");
  operation(job, "cancel <id>", "cancel a queued or running job", jobs, "cancel");

  operation(admin, "usage", "what tenants used in a month, and what that comes to", () => import("./usage.ts"), "usage")
    .option("--tenant <T>", "tenant, by id or slug")
    .option("--month <M>", "month of UTC, such as 2026-11; the present one unless told");
  const live = admin.command("live").description("channels of your own live gateway");
  const channels = () => import("./live.ts");
  operation(live, "create", "create a channel; its stream key is printed once", channels, "create")
    .requiredOption("--tenant <T>", "tenant, by id or slug")
    .requiredOption("--channel <C>", "a-z 0-9 _ -: its path at the gateway is live/<C>")
    .option("--name <N>", "name; the channel's own unless told")
    .option("--playback-policy <P>", "public or signed; the tenant's default unless told")
    .option("--publisher <USER>", "the only user name that may publish");
  operation(live, "list", "list channels, newest first", channels, "list").option(
    "--tenant <T>",
    "tenant, by id or slug",
  );
  operation(live, "rotate <channel>", "replace a channel's stream key, by name or id", channels, "rotate");
  operation(live, "revoke <channel>", "let nobody publish or read a channel any more", channels, "revoke");
  operation(live, "token <channel>", "print a playback token for a channel", channels, "token").option(
    "--expires-in <TIME>",
    "such as 12h, 45m; an hour unless told",
  );

  const token = admin.command("token").description("the admin, worker and live gateway tokens");
  token
    .command("show [name]")
    .description("print one token, or all of them")
    .action(async (name: string | undefined, _, command: Command) => (await import("./token.ts")).show(name, command));
  operation(
    token,
    "rotate <name>",
    "replace a token; the old one is refused from then on",
    () => import("./token.ts"),
    "rotate",
  );

  const storage = admin.command("storage").description("where objects lie");
  const storages = () => import("./storage.ts");
  operation(storage, "check", "prove credentials, bucket, CORS and clock, and say what is wrong", storages, "check");
  operation(
    storage,
    "migrate",
    "carry all objects to the other storage while serving, verify them, switch; again to go on",
    storages,
    "migrate",
  )
    .requiredOption("--to <STORAGE>", "local or s3")
    .option("--quick", "compare sizes alone instead of reading everything back")
    .option("--dry-run", "only tell how much there is to copy")
    .option("--remove-old", "remove the old copies when all is over");
  operation(storage, "status", "where objects lie, and how far a migration is", storages, "status");
  operation(storage, "pause", "hold a migration; migrate goes on with it", storages, "pause");
  operation(storage, "cancel", "give up a migration before its switch", storages, "cancel");
  operation(storage, "clean", "remove the copies that a migration left behind", storages, "clean");

  operation(admin, "audit", "who changed what, newest first", () => import("./audit.ts"), "audit")
    .option("--tenant <T>", "of a tenant, by id or slug")
    .option("--since <TIME>", "from then on: 2h, 7d or 2026-11-20T09:30:00Z")
    .option("--limit <N>", "at most so many, up to 500", "100");
  operation(
    admin,
    "backup <file>",
    "database, secrets and, if wanted, objects in one tar archive; while serving or not",
    () => import("./backup.ts"),
    "backup",
  )
    .option("--objects", "the objects too; else only a list of them")
    .option("--without-secrets", "leave out tokens and the signing secret: those in use then end with a restore")
    .option("--force", "replace an existing file");
  admin
    .command("restore <file>")
    .description("make an empty data directory what it was when the archive was made")
    .option("--check", "change nothing: only look whether everything is there and as it was")
    .action(async (file: string, _, command: Command) => (await import("./backup.ts")).restore(file, command));
  admin
    .command("config")
    .description("every setting, its value and where it came from")
    .action(async (_, command: Command) => (await import("./config.ts")).show(command));
  admin
    .command("doctor")
    .description("look over database, objects both ways, ffmpeg, clock, disk and permissions")
    .option("--fix", "mend what can be mended; without it nothing is changed")
    .option("--force", "with --fix: move unreferenced objects to the trash even where they are more than half of all")
    .action(async (_, command: Command) => (await import("./doctor.ts")).doctor(command));
}

const withFilters = (command: Command): Command =>
  command
    .option("--tenant <T>", "of a tenant, by id or slug")
    .option("--endpoint <ID>", "of an endpoint")
    .option("--event <NAME>", "of one event, such as video.asset.ready")
    .option("--status <S>", "pending, delivered, failed or skipped")
    .option("--since <TIME>", "events from then on: 2h, 7d or 2026-11-20T09:30:00Z")
    .option("--until <TIME>", "events before then");
