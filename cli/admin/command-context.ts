import type { Command } from "commander";
import type { Admin } from "../connect.ts";

/** What an operator's command gets: the way to the data, whether JSON is wanted, and its own options. */
export type CommandContext<O = Record<string, string | undefined>> = {
  admin: Admin;
  json: boolean;
  options: O;
  args: string[];
  command: Command;
};
