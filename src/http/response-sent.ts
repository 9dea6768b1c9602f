/** Bytes of the body that the connection did not take any more. */
type Ended = (unsentBytes: number) => void;
const endings = new WeakMap<Response, Ended>();

/** `told` once a whole body is through its socket, or that is gone. Where there is no socket nobody tells. */
export const onResponseSent = (response: Response, told: Ended) => endings.set(response, told);
export const responseSentListener = (response: Response): Ended | undefined => endings.get(response);
