import { type ComponentChildren, createContext } from "preact";
import { useCallback, useContext, useId, useLayoutEffect, useState } from "preact/hooks";
import { VodboxError } from "#clients/typescript/error.ts";
import { useUnsaved } from "../hooks/use-unsaved.ts";
import { useTexts } from "../texts/texts.tsx";
import { CloseContext } from "./dialog.tsx";
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

const NO_FAULTS = {};
/** What the API objects to in the last attempt, by the path of a field. */
const FaultsContext = createContext<Record<string, string[]>>(NO_FAULTS);

/** What is wrong with the field of this name; the path of a nested one ends with it. */
function useFault(name: string): string | undefined {
  const faults = useContext(FaultsContext);
  const [, messages] = Object.entries(faults).find(([path]) => path === name || path.endsWith(`.${name}`)) ?? [];
  return messages?.[0];
}

/**
 * A form that sends its fields by name, shows what the API objects to, also at the field, and cannot be sent twice at once. In a
 * dialog it can be canceled.
 */
export function Form({ submit, onSubmit, children, asksBeforeLeaving = false }: FormProps) {
  const t = useTexts();
  const close = useContext(CloseContext);
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
      <WaitContext.Provider value={wait}>
        <FaultsContext.Provider value={(error instanceof VodboxError && error.details) || NO_FAULTS}>
          {children}
        </FaultsContext.Provider>
      </WaitContext.Provider>
      <ErrorNotice error={error} />
      <div class="row form-end">
        {close && (
          <button type="button" onClick={close}>
            {t("cancel")}
          </button>
        )}
        <button type="submit" class="primary" disabled={isWaiting}>
          {submit}
        </button>
      </div>
    </form>
  );
}

/** What a field needs and what is wrong with it, and the attributes for screen readers. */
function useNotes(name: string, hint: string | undefined) {
  const id = useId();
  const fault = useFault(name);
  const described = [hint && `${id}-hint`, fault && `${id}-fault`].filter(Boolean).join(" ");
  return {
    attributes: { id, "aria-describedby": described || undefined, "aria-invalid": fault ? true : undefined },
    notes: (
      <>
        {/* Generated content: the notice of the form has the same words, and scripts that drive the console look for them once. */}
        {fault && <small id={`${id}-fault`} class="fault" data-text={fault} />}
        {hint && (
          <small id={`${id}-hint`} class="fine">
            {hint}
          </small>
        )}
      </>
    ),
  };
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
  const { attributes, notes } = useNotes(rest.name, hint);
  return (
    <div class="field">
      <label for={attributes.id}>{label}</label>
      <input
        {...rest}
        {...attributes}
        // JSX has a type for each kind of input; all of these have the same properties.
        type={type as "text"}
        // Not `value`, which would discard what was typed when the page is rendered again.
        defaultValue={value}
        onInput={({ currentTarget }) => onInput?.(currentTarget.value)}
      />
      {notes}
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
  const { attributes, notes } = useNotes(name, undefined);
  return (
    <div class="field">
      <label for={attributes.id}>{label}</label>
      <select {...attributes} name={name} onChange={({ currentTarget }) => onChange?.(currentTarget.value)}>
        {options.map(([option, text]) => (
          <option key={option} value={option} selected={option === value}>
            {text}
          </option>
        ))}
      </select>
      {notes}
    </div>
  );
}

type AreaProps = { label: string; name: string; value?: string; hint?: string; rows?: number };

/** A field of several lines. */
export function Area({ label, name, value, hint, rows = 4 }: AreaProps) {
  const { attributes, notes } = useNotes(name, hint);
  return (
    <div class="field">
      <label for={attributes.id}>{label}</label>
      <textarea {...attributes} name={name} rows={rows} defaultValue={value} />
      {notes}
    </div>
  );
}

type CheckboxProps = { label: string; name: string; isChecked: boolean; hint?: string };

/** Sends `on` under its name while it is checked, else nothing. */
export function Checkbox({ label, name, isChecked, hint }: CheckboxProps) {
  const { attributes, notes } = useNotes(name, hint);
  return (
    <div class="field">
      <label class="row" for={attributes.id}>
        <input {...attributes} type="checkbox" name={name} defaultChecked={isChecked} />
        {label}
      </label>
      {notes}
    </div>
  );
}
