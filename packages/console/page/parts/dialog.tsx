import type { ComponentChildren } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { Refused } from '../api.js'
import { useShell } from '../context.js'
import { tellChanged } from '../live/use-ask.js'
import { Notice } from './basics.js'

interface DialogProps {
  readonly title: ComponentChildren
  /** The sentence about what the action will do. */
  readonly what: ComponentChildren
  /** The word of the button that does it. */
  readonly submit: string
  readonly isDangerous?: boolean
  /** Whether all that it needs is there. @default true */
  readonly isReady?: boolean
  /** Whether the dialog says beforehand that the operators act on themselves. @default false */
  readonly isWarned?: boolean
  readonly children?: ComponentChildren
  /** Does it, and resolves to a sentence about what was done. `confirmed`: the operator was asked about themselves. */
  run(confirmed: boolean): Promise<string>
}

/** Asks before an action. The browser keeps the focus in it, closes it by Escape, and gives the focus back. */
export function ActionDialog(props: DialogProps) {
  const { title, what, submit, isDangerous, isReady = true, isWarned = false, children, run } = props
  const shell = useShell()
  const element = useRef<HTMLDialogElement>(null)
  const id = useId()
  const [failure, setFailure] = useState<Refused>()
  const [isBusy, setBusy] = useState(false)
  useEffect(() => element.current?.showModal(), [])
  const isAsked = isWarned || failure?.more.confirm !== undefined

  async function act(event: Event) {
    event.preventDefault()
    if (isBusy || !isReady) return
    setBusy(true)
    try {
      const done = await run(isAsked)
      element.current?.close()
      shell.say(done)
      tellChanged()
    } catch (error) {
      setFailure(error instanceof Refused ? error : new Refused(0, 'This page failed; reload it.'))
    }
    setBusy(false)
  }

  return (
    <dialog ref={element} aria-labelledby={id} onClose={() => element.current && shell.close()}>
      <form onSubmit={act}>
        <h2 id={id}>{title}</h2>
        <div class="what">{what}</div>
        {children}
        {failure && (
          <Notice tone={failure.more.confirm === undefined ? 'bad' : 'warn'}>
            <span role="alert">
              {failure.more.confirm === 'own-address'
                ? 'Your own address is among them: your requests would be refused, too.'
                : failure.message}
            </span>
            {typeof failure.more.lines === 'string' && <pre>{failure.more.lines}</pre>}
          </Notice>
        )}
        <div class="buttons">
          <button type="button" class="quiet" onClick={() => element.current?.close()}>
            Cancel
          </button>
          <button type="submit" class={isDangerous ? 'danger' : 'primary'} disabled={!isReady || isBusy}>
            {isAsked ? `${submit} all the same` : submit}
          </button>
        </div>
      </form>
    </dialog>
  )
}

interface FieldProps {
  readonly label: string
  readonly hint?: ComponentChildren
  readonly children: (id: string) => ComponentChildren
}

function Field({ label, hint, children }: FieldProps) {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children(id)}
      {hint && <p class="hint">{hint}</p>}
    </div>
  )
}

interface TextFieldProps {
  readonly label: string
  readonly value: string
  readonly hint?: ComponentChildren
  readonly type?: 'text' | 'number' | 'datetime-local'
  readonly placeholder?: string
  readonly isRequired?: boolean
  set(value: string): void
}

export function TextField({ label, value, set, hint, type = 'text', placeholder, isRequired }: TextFieldProps) {
  return (
    <Field label={label} hint={hint}>
      {(id) => (
        <input
          id={id}
          type={type as 'text'}
          value={value}
          placeholder={placeholder}
          required={isRequired}
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => set(event.currentTarget.value)}
        />
      )}
    </Field>
  )
}

interface ChoiceProps {
  readonly label: string
  readonly value: string
  readonly hint?: ComponentChildren
  /** Texts by value. */
  readonly of: readonly (readonly [string, string])[]
  set(value: string): void
}

export function Choice({ label, value, of, hint, set }: ChoiceProps) {
  return (
    <Field label={label} hint={hint}>
      {(id) => (
        <select id={id} value={value} onChange={(event) => set(event.currentTarget.value)}>
          {of.map(([each, text]) => (
            <option key={each} value={each}>
              {text}
            </option>
          ))}
        </select>
      )}
    </Field>
  )
}
