/**
 * The publisher sends what this server does not accept. Its message says what to change; the publisher receives it where
 * the protocol can transport it.
 */
export class RejectedMedia extends Error {
  constructor(message: string) {
    super(message);
    this.name = "RejectedMedia";
  }
}
