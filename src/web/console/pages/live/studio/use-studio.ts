import { useCallback, useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { LiveChannel } from "#web/console/types.ts";
import { Publisher, type PublisherState } from "./publisher.ts";
import { type Choice, type Devices, devices, type Recording, record } from "./recording.ts";

const FIRST: Choice = { source: "camera", camera: "", microphone: "" };
const NO_DEVICES: Devices = { cameras: [], microphones: [] };

/** What is recorded for a channel, and whether it is sent. */
export function useStudio(channel: LiveChannel) {
  const [choice, setChoice] = useState<Choice>(FIRST);
  const [known, setKnown] = useState<Devices>(NO_DEVICES);
  const [recording, setRecording] = useState<Recording | null>(null);
  const [state, setState] = useState<PublisherState>("off");
  const [failure, setFailure] = useState<unknown>(null);
  const current = useRef<Recording | null>(null);
  // A channel that is loaded again is the same one.
  const publisher = useMemo(
    () =>
      new Publisher(channel, (next, error = null) => {
        setState(next);
        setFailure(error);
      }),
    [channel.id],
  );

  const keep = useCallback((next: Recording | null) => {
    current.current?.stop();
    current.current = next;
    setRecording(next);
  }, []);

  const stop = useCallback(() => publisher.stop(), [publisher]);

  /** Records what was chosen; a stream that is sent continues with it. */
  const show = useCallback(
    async (wanted: Choice) => {
      setFailure(null);
      try {
        const made = await record(wanted, () => {
          publisher.stop();
          keep(null);
        });
        await publisher.replace(made.stream);
        keep(made);
        setKnown(await devices());
        return made;
      } catch (error) {
        setFailure(error);
        return null;
      }
    },
    [publisher, keep],
  );

  useEffect(() => {
    void show(FIRST);
    const leave = () => publisher.stop();
    // A page that is closed, also one that the browser keeps.
    addEventListener("pagehide", leave);
    return () => {
      removeEventListener("pagehide", leave);
      publisher.stop();
      current.current?.stop();
    };
  }, [publisher, show]);

  const choose = (change: Partial<Choice>) => {
    const wanted = { ...choice, ...change };
    setChoice(wanted);
    void show(wanted);
  };
  const start = async () => {
    const made = recording ?? (await show(choice));
    if (made) await publisher.start(made.stream);
  };
  return { choice, choose, devices: known, recording, state, failure, start, stop };
}
