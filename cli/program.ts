import { Command } from "commander";
import { addAdmin } from "./admin/admin.ts";
import { type GivenFlags, keepGiven, settingsHelp } from "./settings.ts";

/** The tree of commands. What a command does is loaded when it runs, so that `--help` costs next to nothing. */
export function createProgram(given: GivenFlags): Command {
  const program = new Command("vodbox")
    .description("A whole video platform in one executable file.")
    .exitOverride()
    .showSuggestionAfterError()
    .configureOutput({
      outputError: (text, write) =>
        write(
          `${text
            .trim()
            .replace(/^error: /, "vodbox: ")
            .replaceAll("\n", " ")
            .replace(/[^.?!)]$/, "$&.")} See 'vodbox --help'.\n`,
        ),
    })
    .option("-V, --version", "print the versions of vodbox and of all that it carries");
  keepGiven(program, given);
  program.addHelpText("after", settingsHelp(["data_dir"]));
  // Asked for before any command: commander's own version option wants its text at once, and this one asks ffmpeg.
  program.action(async (options: { version?: boolean }, command: Command) => {
    if (options.version) return (await import("./version.ts")).printVersion();
    if (command.args.length > 0) command.error(`error: unknown command '${command.args[0]}'`);
    return command.help();
  });

  program
    .command("serve")
    .description("run the API, its background work and local workers")
    .option(
      "--allow-empty-database",
      "start even where objects or secrets are left of a database that is missing or empty",
    )
    .addHelpText("after", settingsHelp(["host", "port", "workers", "base_url", "data_dir"]))
    .action(async (_, command: Command) => (await import("./serve.ts")).serveCommand(command));
  program
    .command("worker")
    .description("lease and run transcoding jobs of any vodbox serve")
    .option("--server <URL>", "address of the server")
    .option("--token <T>", "worker token; better in VODBOX_WORKER_TOKEN, where others on the machine do not see it")
    .option("--local", "started by serve on the same machine; ends with it")
    .option("--once", "take one job, if there is one, and end; 1 when it did not succeed")
    .option("--concurrency <N>", "jobs at once; unless told, one for each eight cores and two gigabytes")
    .option("--scratch <DIR>", "where sources and results are kept meanwhile")
    .action(async (_, command: Command) => (await import("./worker.ts")).workerCommand(command));
  program
    .command("demo")
    .description("make a clip, upload it like any client, watch it become a video")
    .option("--server <URL>", "use a running server instead of starting one")
    .option("--seconds <N>", "length of the clip", "12")
    .option("--once", "stop the server that was started once the video is ready")
    .action(async (_, command: Command) => (await import("./demo.ts")).demoCommand(command));
  program
    .command("push")
    .description("upload files; what was interrupted goes on where it ended")
    .argument("[files...]", "videos")
    .option("--server <URL>", "address of the server (VODBOX_SERVER)")
    .option("--key <KEY>", "API key; better in VODBOX_KEY, where others on the machine do not see it")
    .option("--title <T>", "title, of one file; else its name")
    .option("--tag <K=V>", "a tag, as often as you like", (pair: string, all: string[]) => [...all, pair], [])
    .option("--collection <ID>", "the collection to put it in")
    .option("--playback-policy <P>", "public or signed; else the tenant's default")
    .option("--jobs <N>", "parts at once; an interruption costs as many (default 1, with --encode 8)")
    .option("--encode", "encode here, to what the server publishes, and deliver what is ready to play")
    .option("--no-source", "with --encode: do not send the original too")
    .option("--scratch <DIR>", "with --encode: where what is not delivered yet is kept; else the cache folder")
    .option("--watch <DIR>", "keep uploading what appears there, is complete, and was not pushed before")
    .option(
      "--wait <TIME>",
      "wait so long for a server that does not answer yet, as 45m or 1h; else that fails at once",
    )
    .action(async (_, __, command: Command) => (await import("./push.ts")).pushCommand(command));
  addAdmin(program);
  // Last, for commands take it over from their parent: the program alone sees what is no command in its arguments.
  program.allowExcessArguments().helpCommand("help [command]", "display help for a command");
  return program;
}
