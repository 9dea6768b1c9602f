import type { Command } from "commander";
import type { Admin } from "../connect.ts";

/** The argument of every admin command: access to the data, whether to print JSON, and the command's options. */
export type CommandContext<O = Record<string, string | undefined>> = {
  admin: Admin;
  json: boolean;
  options: O;
  args: string[];
  command: Command;
};
