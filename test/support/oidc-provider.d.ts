/** Only what the tests use; the package has no types of its own. */
declare module "oidc-provider" {
  export default class Provider {
    constructor(issuer: string, configuration: unknown);
    Client: any;
    callback(): (request: unknown, response: unknown) => void;
    interactionFinished(request: unknown, response: unknown, result: unknown, options: unknown): Promise<void>;
  }
}
