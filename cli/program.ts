import { Command, Help, Option } from "commander";
import { alternatives } from "#lib/base";
import { PLAYBACK_POLICIES } from "#model/enums.ts";
import { addAdmin } from "./admin/admin.ts";
import { addExamples } from "./examples.ts";
import { printError, sentence } from "./report-error.ts";
import { type ParsedFlags, settingFlags, settingsHelp, storeFlags } from "./settings.ts";
import { suggestion } from "./suggest.ts";

/** The command tree. A command's code is loaded when it runs, so that `--help` is fast. */
export function createProgram(given: ParsedFlags): Command {
  const program: Command = new Command("vodbox")
    .description("A complete video platform in one executable.")
    .exitOverride()
    .configureHelp({
      // Accepted by every command, before or after it: `extractSettings` removes them before commander parses.
      visibleOptions(command) {
        const own = Help.prototype.visibleOptions.call(this, command);
        return [...own, new Option("--json", "print JSON, errors too"), new Option("--no-color", "print no colors")];
      },
    })
    .configureOutput({
      outputError(text) {
        const command = namedCommand(program);
        const message = text.trim().replace(/^error: /, "");
        const help = given.json ? "" : ` See '${pathOf(command)} --help'.`;
        const fault = sentence(allMissing(command, message));
        printError(`${fault}${optionHint(program, message)}${help}`, { json: given.json, code: "usage" });
      },
    })
    .showSuggestionAfterError()
    .option("-V, --version", "print the versions of vodbox and its bundled components");
  storeFlags(program, given);
  program.addHelpText("after", settingsHelp(["data_dir"]));
  // Handled before any command: commander's version option needs its text immediately, and ours runs ffmpeg.
  program.action(async (options: { version?: boolean }, command: Command) => {
    if (options.version) return (await import("./version.ts")).printVersion({ json: given.json });
    const [unknown] = command.args;
    if (unknown !== undefined) {
      const names = command.commands.map((one) => one.name());
      command.error(`error: unknown command '${unknown}'.${suggestion(unknown, names)}`);
    }
    return command.help();
  });

  program
    .command("serve")
    .description("run the API, scheduled tasks and local workers")
    .option(
      "--allow-empty-database",
      "start even where objects or secrets are left of a database that is missing or empty",
    )
    .addHelpText("after", settingsHelp(["host", "port", "workers", "base_url", "data_dir"]))
    .action(async (_, command: Command) => (await import("./serve.ts")).serveCommand(command));
  program
    .command("worker")
    .description("run transcoding jobs of a vodbox server")
    .option("--server <URL>", "URL of the server")
    .option("--token <T>", "worker token; better in VODBOX_WORKER_TOKEN, where others on the machine do not see it")
    .option("--local", "started by serve on the same machine; exits with it")
    .option("--once", "run at most one job, then exit; status 1 if it failed")
    .option("--concurrency <N>", "concurrent jobs; default: one per eight cores and two gigabytes")
    .option("--scratch <DIR>", "where sources and results are kept meanwhile")
    .action(async (_, command: Command) => (await import("./worker.ts")).workerCommand(command));
  program
    .command("live-ingest", { hidden: true })
    .description("receive live streams for the server that starts this process")
    .action(async () => (await import("./live-ingest.ts")).liveIngestCommand());
  program
    .command("recognize", { hidden: true })
    .argument("<job>", "what the worker that starts this process wants recognized")
    .action(async (job: string) => (await import("./recognize.ts")).recognizeCommand(job));
  program
    .command("health")
    .description("check that the server on the data directory is ready; exits 1 if it is not")
    .option("--server <URL>", "check this server instead")
    .addHelpText("after", settingsHelp(["data_dir"]))
    .action(async (_, command: Command) => (await import("./health.ts")).healthCommand(command));
  program
    .command("mcp")
    .description("offer a server's API to an agent, by the Model Context Protocol over standard input and output")
    .option("--server <URL>", "URL of the server (VODBOX_SERVER); default: the one that runs on the data directory")
    .option("--key <KEY>", "API key; better in VODBOX_KEY, where others on the machine do not see it")
    .addHelpText("after", settingsHelp(["data_dir"]))
    .action(async (_, command: Command) => (await import("./mcp.ts")).mcpCommand(command));
  program
    .command("demo")
    .description("generate a clip, upload it through the API and wait until it plays")
    .option("--server <URL>", "use a running server instead of starting one")
    .option("--seconds <N>", "length of the clip", "4")
    .option("--once", "stop the started server when the video is ready")
    .action(async (_, command: Command) => (await import("./demo/demo.ts")).demoCommand(command));
  program
    .command("push")
    .description("upload files; interrupted uploads resume")
    .argument("[files...]", "videos")
    .option("--server <URL>", "URL of the server (VODBOX_SERVER); default: the one that runs on the data directory")
    .option("--key <KEY>", "API key; better in VODBOX_KEY, where others on the machine do not see it")
    .option("--tenant <T>", "without a key, on the server's machine: the tenant, by id or slug")
    .option("--wait-ready", "wait until the videos play and print their watch URLs")
    .option("--title <T>", "title of a single file; default: the file name")
    .option("--tag <K=V>", "tag as name=value; may be repeated", (pair: string, all: string[]) => [...all, pair], [])
    .option("--collection <ID>", "id of the collection")
    .option("--playback-policy <P>", `${alternatives(PLAYBACK_POLICIES)}; default: the tenant's`)
    .option("--encoding-profile <NAME>", "what is produced from the videos; default: the tenant's")
    .option("--jobs <N>", "concurrent parts; default: 1, with --encode 8")
    .option("--encode", "encode locally to the server's specification and upload the result")
    .option("--no-source", "with --encode: do not send the original too")
    .option("--scratch <DIR>", "with --encode: directory of files that are not uploaded yet; else the cache directory")
    .option("--watch <DIR>", "upload new files of this directory as they are completed")
    .option(
      "--wait <TIME>",
      "how long to wait for a server that is not responding, such as 45m or 1h; default: fail at once",
    )
    .action(async (_, __, command: Command) => (await import("./push.ts")).pushCommand(command));
  program
    .command("import")
    .description("copy the videos of another platform, a directory or a bucket; interrupted imports continue")
    .argument("<provider>", "mux, cloudflare, bunny, peertube, vimeo, folder or s3")
    .argument("[from]", "for folder: the directory; for s3: s3://bucket/prefix")
    .option("--server <URL>", "URL of the server (VODBOX_SERVER); default: the one that runs on the data directory")
    .option("--key <KEY>", "API key; better in VODBOX_KEY, where others on the machine do not see it")
    .option("--tenant <T>", "without a key, on the server's machine: the tenant, by id or slug")
    .option("--dry-run", "list what would be imported, with bytes and minutes")
    .option("--limit <N>", "import at most the first N videos")
    .option("--jobs <N>", "concurrent videos; default: 3")
    .option("--collection <ID>", "id of the collection")
    .option(
      "--playback-policy <P>",
      `${alternatives(PLAYBACK_POLICIES)}; default: as the provider has it, else the tenant's`,
    )
    .option("--encoding-profile <NAME>", "what is produced from the videos; default: the tenant's")
    .option("--redirects <FORMAT>", "also write redirects from the provider's paths: nginx, caddy or csv")
    .option("--no-wait", "do not wait until the videos are encoded; a later run verifies them")
    .action(async (_, __, ___, command: Command) => (await import("./import.ts")).importCommand(command));
  const captions = program
    .command("captions")
    .description("models for captions from speech (VODBOX_TRANSCRIBE=whisper)");
  captions
    .command("models")
    .description("list the models, with their sizes, and which are installed")
    .addHelpText("after", settingsHelp(["data_dir"]))
    .action(async (_, command: Command) => (await import("./captions.ts")).listModels(command));
  captions
    .command("install")
    .description("install a model in the data directory; interrupted downloads continue")
    .argument("<model>", "a name that `captions models` lists, or any name with --file")
    .option("--file <PATH>", "install this file instead of downloading one")
    .addHelpText("after", settingsHelp(["data_dir", "whisper_models_url"]))
    .action(async (name: string, _, command: Command) => (await import("./captions.ts")).installCommand(name, command));
  addAdmin(program);
  program
    .command("completion")
    .description("print the completion script of a shell")
    .argument("<shell>", "bash, zsh or fish")
    .action(async (shell: string) => (await import("./completion.ts")).printCompletion(program, shell));
  addExamples(program);
  // Last, because commands inherit it from their parent: only the program handles unknown commands.
  program.allowExcessArguments().helpCommand("help [command]", "display help for a command");
  return program;
}

/** The command that the arguments name, as far as they do. */
function namedCommand(program: Command): Command {
  let command = program;
  for (const word of program.args) {
    const next = command.commands.find((one) => one.name() === word);
    if (!next) break;
    command = next;
  }
  return command;
}

const pathOf = (command: Command): string =>
  command.parent ? `${pathOf(command.parent)} ${command.name()}` : command.name();

/** Commander names the first required option that is missing: all of them, so that one attempt is enough. */
function allMissing(command: Command, message: string): string {
  if (!message.startsWith("required option ")) return message;
  const missing = command.options.filter(
    (option) => option.mandatory && command.getOptionValue(option.attributeName()) === undefined,
  );
  if (missing.length < 2) return message;
  return `required options not specified: ${missing.map(({ flags }) => `'${flags}'`).join(", ")}`;
}

/**
 * Commander suggests only the command's own options, and reports a missing option before a mistyped one. With a leading
 * space; empty when there is nothing to suggest.
 */
function optionHint(program: Command, message: string): string {
  const flags = settingFlags();
  const [, unknown] = /^unknown option '(--[^'=]*)/.exec(message) ?? [];
  if (unknown !== undefined) return message.includes("Did you mean") ? "" : suggestion(unknown, flags);
  const [, missing] = /^required option '(--[a-z-]+)/.exec(message) ?? [];
  if (missing === undefined) return "";
  const mistyped = program.args.find((word) => word.startsWith("--") && suggestion(word, [missing]) !== "");
  return mistyped === undefined ? "" : ` ${mistyped} is unknown.${suggestion(mistyped, [missing])}`;
}
