import { enableCompileCache } from "node:module";
import { join, relative } from "node:path";
import { extractSettings } from "#cli/settings.ts";
import { paths } from "./build/paths.ts";
import { prepareBuild } from "./build/prepare.ts";

/**
 * `npm run dev`: `vodbox serve` from its sources, with readable logs and a data directory of its own. Further arguments
 * are those of `serve`. Node's watch mode runs this file again after a change.
 */
const own = ["--data", join(paths.root, "dev-data"), "--env", "development", "--log-format", "pretty"];
const args = [...own, ...process.argv.slice(2)];

await prepareBuild();
// Without Node's cache of stripped and compiled files, a start takes twice as long.
enableCompileCache(join(paths.root, "build/dev-code"));
const { data_dir: data = "" } = extractSettings(args).flags;
console.log(`admin token in ${join(relative(process.cwd(), data), "secrets/admin_token")}`);
process.argv.splice(1, Number.POSITIVE_INFINITY, join(paths.root, "cli/main.ts"), "serve", ...args);
await import("#cli/main.ts");
