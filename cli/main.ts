import { Command } from "commander";

const program = new Command("vodbox")
  .description("A whole video platform in one executable file.")
  .option("-V, --version", "print the versions of vodbox and of all that it carries");

// Not commander's own version option: that wants its text before anything is parsed, and this one asks ffmpeg.
const first = process.argv[2];
if (first === "--version" || first === "-V") void import("./version.ts").then(({ printVersion }) => printVersion());
else void program.parseAsync();
