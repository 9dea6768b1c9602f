export { MESSAGE } from "./messages.ts";
export { PublishClient, type PublishEnd } from "./publish-client.ts";
export { type PublishUrl, PublishUrlInvalid, readPublishUrl } from "./publish-url.ts";
export { createRtmpServer, type KeyPair, type RtmpServer } from "./server.ts";
export { refusalText } from "./statuses.ts";
export { announcedFourCcs, configPayload, metadataPayload, samplePayload } from "./tag-writer.ts";
