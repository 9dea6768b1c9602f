import { type ComponentChildren, createContext } from "preact";
import { useCallback, useContext, useId, useLayoutEffect, useState } from "preact/hooks";
import { VodboxError } from "#clients/typescript/error.ts";
import { useUnsaved } from "../hooks/use-unsaved.ts";
import { ErrorNotice } from "./notice.tsx";

type FormProps = {
  submit: string;
  onSubmit(values: Record<string, string>): Promise<unknown>;
  children: ComponentChildren;
  /** Changes that were not sent yet are asked about before the page is left. */
  asksBeforeLeaving?: boolean;
};

type Wait = (change: 1 | -1) => void;
const WaitContext = createContext<Wait>(() => {});

/** While `isWaiting`, the form around the caller cannot be sent: a field of it is still being loaded. */
export function useFormWait(isWaiting: boolean): void {
  const wait = useContext(WaitContext);
  useLayoutEffect(() => {
    if (!isWaiting) return;
    wait(1);
    return () => wait(-1);
  }, [isWaiting, wait]);
}

/** A form that sends its fields by name, shows what the API objects to, and cannot be sent twice at once. */
export function Form({ submit, onSubmit, children, asksBeforeLeaving = false }: FormProps) {
  const [isChanged, setChanged] = useState(false);
  useUnsaved(asksBeforeLeaving && isChanged);
  const [error, setError] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const [waits, setWaits] = useState(0);
  const wait = useCallback<Wait>((change) => setWaits((count) => count + change), []);
  const isWaiting = isBusy || waits > 0;
  const send = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = event.currentTarget as HTMLFormElement;
    if (isWaiting) return;
    setBusy(true);
    setError(null);
    try {
      await onSubmit(Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, String(value)])));
      setChanged(false);
    } catch (thrown) {
      setError(thrown);
    } finally {
      setBusy(false);
    }
  };
  return (
    <form onSubmit={send} onInput={() => setChanged(true)} noValidate={error instanceof VodboxError}>
      <WaitContext.Provider value={wait}>{children}</WaitContext.Provider>
      <ErrorNotice error={error} />
      <button type="submit" class="primary" disabled={isWaiting}>
        {submit}
      </button>
    </form>
  );
}

type FieldProps = {
  label: string;
  name: string;
  type?: "text" | "email" | "password" | "url" | "search" | "datetime-local" | "number";
  hint?: string;
  value?: string;
  required?: boolean;
  minLength?: number;
  /** The least value of a number. */
  min?: string;
  max?: string;
  step?: string;
  autocomplete?: string;
  onInput?(value: string): void;
};

export function Field({ label, hint, type = "text", value, onInput, ...rest }: FieldProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <input
        {...rest}
        id={id}
        // JSX has a type for each kind of input; all of these have the same properties.
        type={type as "text"}
        // Not `value`, which would discard what was typed when the page is rendered again.
        defaultValue={value}
        aria-describedby={hint ? `${id}-hint` : undefined}
        onInput={({ currentTarget }) => onInput?.(currentTarget.value)}
      />
      {hint && (
        <small id={`${id}-hint`} class="fine">
          {hint}
        </small>
      )}
    </div>
  );
}

type SelectProps = {
  label: string;
  name: string;
  value?: string;
  options: [string, string][];
  onChange?(value: string): void;
};

export function Select({ label, name, value, options, onChange }: SelectProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <select id={id} name={name} onChange={({ currentTarget }) => onChange?.(currentTarget.value)}>
        {options.map(([option, text]) => (
          <option key={option} value={option} selected={option === value}>
            {text}
          </option>
        ))}
      </select>
    </div>
  );
}

type AreaProps = { label: string; name: string; value?: string; hint?: string; rows?: number };

/** A field of several lines. */
export function Area({ label, name, value, hint, rows = 4 }: AreaProps) {
  const id = useId();
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <textarea
        id={id}
        name={name}
        rows={rows}
        defaultValue={value}
        aria-describedby={hint ? `${id}-hint` : undefined}
      />
      {hint && (
        <small id={`${id}-hint`} class="fine">
          {hint}
        </small>
      )}
    </div>
  );
}

type CheckboxProps = { label: string; name: string; isChecked: boolean; hint?: string };

/** Sends `on` under its name while it is checked, else nothing. */
export function Checkbox({ label, name, isChecked, hint }: CheckboxProps) {
  const id = useId();
  return (
    <div class="field">
      <label class="row" for={id}>
        <input
          id={id}
          type="checkbox"
          name={name}
          defaultChecked={isChecked}
          aria-describedby={hint ? `${id}-hint` : undefined}
        />
        {label}
      </label>
      {hint && (
        <small id={`${id}-hint`} class="fine">
          {hint}
        </small>
      )}
    </div>
  );
}
