import { HttpError } from "#lib/base";
import type { FindChannel } from "../analytics/accept-events.ts";
import { channelSubject } from "../analytics/subject.ts";
import { isActiveTenant } from "../tenants/active.ts";
import { findPublicChannel, hasStream, requireChannelToken } from "./live-state.ts";

/** Finds the channels whose views are recorded: those that viewers can watch, or could until recently. */
export const findViewableChannel: FindChannel = async (app, tokens, name, token) => {
  const channel = await findPublicChannel(app, name);
  if (!channel || !(await isActiveTenant(app, channel.tenantId)) || !(await hasStream(app, channel))) return null;
  try {
    await requireChannelToken(tokens, channel, token);
    return channelSubject(channel);
  } catch (error) {
    if (error instanceof HttpError) return null;
    throw error;
  }
};
