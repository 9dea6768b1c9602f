import type { Command } from "commander";
import { createLog } from "../src/log.ts";
import { serve } from "../src/serve.ts";
import { line } from "./print.ts";
import { settingsOf } from "./settings.ts";
import { onStopSignal } from "./signals.ts";

export async function serveCommand(command: Command): Promise<void> {
  const config = settingsOf(command);
  const running = await serve(config, { log: await createLog(config) });
  onStopSignal(async () => {
    await running.stop();
    process.exit(0);
  });
  line(`vodbox ready on ${running.baseUrl}`);
  line(`listening on ${running.address}`);
}
