export { createSrtServer } from "./server.ts";
