/** The peer violates the protocol or a limit. Its message is one sentence for the log; the connection is closed. */
export class RtmpFault extends Error {
  constructor(message: string) {
    super(message);
    this.name = "RtmpFault";
  }
}
