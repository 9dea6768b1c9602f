/** Bytes of the body that the connection did not accept. */
type SentListener = (unsentBytes: number) => void;
const endings = new WeakMap<Response, SentListener>();

/** Resolves `told` when the whole body has passed its socket, or the socket has closed. Never without a socket. */
export const onResponseSent = (response: Response, listener: SentListener) => endings.set(response, listener);
export const responseSentListener = (response: Response): SentListener | undefined => endings.get(response);
