import { useEffect, useId, useRef, useState } from 'preact/hooks'
import type { Identity } from '../answers.js'
import { ask, Refused } from '../api.js'
import { useShell } from '../context.js'
import { go } from '../router.js'
import { Notice, valueText, WhoText } from './basics.js'
import { whole } from './format.js'

/** A pause in typing, before suggestions are asked for. */
const PAUSE_MS = 150

interface Candidate extends Identity {
  readonly isKnown: boolean
}

interface Suggestion {
  readonly kind: string
  readonly value: string
  readonly refusals: number
  readonly isBlocked: boolean
}

/** One line below the box. */
interface Option {
  readonly identity: Identity
  readonly note: string
}

interface Shown {
  /** Whether the text fits several kinds, one of which is to be chosen. */
  readonly isChoice: boolean
  readonly options: readonly Option[]
}

const NOTHING: Shown = { isChoice: false, options: [] }

/** The clients that a text may mean. Of one that is known, or the only one, there is nothing to choose. */
async function found(text: string): Promise<Shown | Identity> {
  const { candidates } = await ask<{ candidates: readonly Candidate[] }>('/api/find', { text })
  const known = candidates.filter(({ isKnown }) => isKnown)
  const [one, ...others] = known.length > 0 ? known : candidates
  if (!one) throw new Refused(404, 'No limit, list or block that this console knows counts such a client.')
  const { isKnown: _, ...identity } = one
  if (others.length === 0) return identity
  return {
    isChoice: true,
    options: candidates.map(({ isKnown, ...each }) => ({ identity: each, note: isKnown ? 'known' : '' })),
  }
}

async function suggested(text: string, signal: AbortSignal): Promise<Shown> {
  const { suggestions } = await ask<{ suggestions: readonly Suggestion[] }>('/api/suggestions', { text }, signal)
  return { isChoice: false, options: suggestions.map(optionOf) }
}

function optionOf({ kind, value, refusals, isBlocked }: Suggestion): Option {
  const notes = [isBlocked && 'blocked', refusals > 0 && `refused ${whole(refusals)} ×`]
  return { identity: { kind, value, counted: true }, note: notes.filter((note) => note !== false).join(', ') }
}

/** Finds a client by anything that is known of it, from every page. No kind is chosen before it has to be. */
export function ClientSearch({ isLarge }: { isLarge?: boolean }) {
  const [text, setText] = useState('')
  const [isOpen, setOpen] = useState(false)
  const [shown, setShown] = useState<Shown>(NOTHING)
  const [active, setActive] = useState(-1)
  const [failure, setFailure] = useState<string>()
  const box = useRef<HTMLInputElement>(null)
  const id = useId()
  useSlash(box, !isLarge)
  useSuggestions(isOpen, text, setShown)

  const open = (identity: Identity) => {
    setOpen(false)
    setText('')
    go('client', identity)
  }
  const submit = async () => {
    const chosen = isOpen ? shown.options[active] : undefined
    if (chosen) return open(chosen.identity)
    if (text.trim() === '') return
    try {
      const answer = await found(text)
      if ('kind' in answer) return open(answer)
      setShown(answer)
      setActive(0)
      setOpen(true)
    } catch (error) {
      setFailure(error instanceof Refused ? error.message : 'This page failed; reload it.')
    }
  }
  const { options } = shown
  const move = (by: number) => setActive((at) => (at + by + options.length) % options.length)
  const onKey = (event: KeyboardEvent) => {
    if (event.key === 'Escape') setOpen(false)
    if (!isOpen || options.length === 0 || !['ArrowDown', 'ArrowUp'].includes(event.key)) return
    event.preventDefault()
    move(event.key === 'ArrowDown' ? 1 : active < 0 ? 0 : -1)
  }
  const hasList = isOpen && options.length > 0
  return (
    <search>
      <form
        class={`client-search ${isLarge ? 'large' : ''}`}
        onSubmit={(event) => {
          event.preventDefault()
          void submit()
        }}
        onFocusOut={(event) => {
          if (!event.currentTarget.contains(event.relatedTarget as Node | null)) setOpen(false)
        }}
      >
        <label class="hidden" for={`${id}v`}>
          Find a client
        </label>
        <input
          id={`${id}v`}
          ref={box}
          value={text}
          type="text"
          role="combobox"
          aria-expanded={hasList}
          aria-controls={hasList ? `${id}l` : undefined}
          aria-activedescendant={hasList && active >= 0 ? `${id}${active}` : undefined}
          aria-autocomplete="list"
          autocomplete="off"
          spellcheck={false}
          placeholder="Find a client: address, key, account …"
          onFocus={() => setOpen(true)}
          onKeyDown={onKey}
          onInput={(event) => {
            setText(event.currentTarget.value)
            setFailure(undefined)
            setActive(-1)
            setShown(NOTHING)
            setOpen(true)
          }}
        />
        <button type="submit" class={isLarge ? 'primary' : ''}>
          Find
        </button>
        {hasList && <FoundList {...{ id, shown, active, open }} />}
      </form>
      {failure !== undefined && <Notice tone="bad">{failure}</Notice>}
    </search>
  )
}

interface FoundListProps {
  readonly id: string
  readonly shown: Shown
  /** The index of the option that keys have chosen. */
  readonly active: number
  open(identity: Identity): void
}

function FoundList({ id, shown: { isChoice, options }, active, open }: FoundListProps) {
  return (
    <div class="found">
      <p class="muted">{isChoice ? 'It may be one of these: choose one.' : 'Refused or blocked of late'}</p>
      <div id={`${id}l`} role="listbox" aria-label="Clients">
        {options.map(({ identity, note }, i) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: keys move the choice in the box, which keeps the focus
          // biome-ignore lint/a11y/useFocusableInteractive: as above
          <div
            key={`${identity.kind} ${valueText(identity)}`}
            id={`${id}${i}`}
            role="option"
            aria-selected={i === active}
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => open(identity)}
          >
            <WhoText kind={identity.kind} value={valueText(identity)} /> <span class="muted">{note}</span>
          </div>
        ))}
      </div>
    </div>
  )
}

/** A `/` moves the focus to the box, but for where somebody types. */
function useSlash(box: { readonly current: HTMLInputElement | null }, isFirst: boolean): void {
  useEffect(() => {
    if (!isFirst) return
    const focus = (event: KeyboardEvent) => {
      const { target, key, ctrlKey, metaKey, altKey } = event
      if (key !== '/' || ctrlKey || metaKey || altKey) return
      if (target instanceof HTMLElement && target.closest('input, select, textarea, dialog')) return
      event.preventDefault()
      box.current?.focus()
    }
    addEventListener('keydown', focus)
    return () => removeEventListener('keydown', focus)
  }, [box, isFirst])
}

function useSuggestions(isOpen: boolean, text: string, set: (next: (before: Shown) => Shown) => void): void {
  const { has } = useShell()
  const isThere = has('/api/suggestions')
  useEffect(() => {
    if (!isOpen || !isThere) return
    const ending = new AbortController()
    // They come late: a choice that was asked for stays. Without any, a client is found all the same.
    const show = (shown: Shown) => set((before) => (before.isChoice ? before : shown))
    const timer = setTimeout(() => void suggested(text, ending.signal).then(show, () => {}), PAUSE_MS)
    return () => {
      clearTimeout(timer)
      ending.abort()
    }
  }, [isOpen, isThere, text, set])
}
