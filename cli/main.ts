import { Command } from "commander";

const program = new Command("vodbox").description("A whole video platform in one executable file.");
void program.parseAsync();
