import { testApp } from "../support/app.ts";
import { addressContract } from "./address-contract.ts";

addressContract("local addresses", async () => {
  const app = await testApp();
  return {
    store: app.opened.app.objects as NonNullable<typeof app.opened.app.objects>,
    send: app.opened.server.fetch,
    pass: async () => app.turn(5000),
  };
});
