// The entry of the npm package of the commands (scripts/clients/commands.ts): the same program, on other versions of Node.js.
import "./older-node.ts";
import "../main.ts";
