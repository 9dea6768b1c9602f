import type Mux from "@mux/mux-node";
import { type TestApp, testApp } from "../app.ts";
import { type Receiver, receiver } from "../receiver.ts";
import { muxClient } from "./client.ts";

export type MuxReceiver = { app: TestApp; key: string; mux: Mux; there: Receiver };

/** A server with a tenant, its key, Mux's client with this key, and a receiver of webhooks. */
export async function muxReceiver(): Promise<MuxReceiver> {
  const app = await testApp({ webhook_allow_cidrs: "127.0.0.0/8" });
  const key = await app.key((await app.tenant()).id);
  return { app, key, mux: muxClient(app, key), there: await receiver() };
}
