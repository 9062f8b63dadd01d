import { type ComponentChildren, createContext } from 'preact'
import { useContext } from 'preact/hooks'
import type { About, PoliciesAnswer } from './answers.js'

/** What every part of the page knows. */
export interface Shell {
  readonly about: About
  readonly policies: PoliciesAnswer | undefined
  /** Whether the operator may change anything. */
  readonly mayAct: boolean
  /** Whether this console has a route: an older one may not. */
  has(route: string): boolean
  /** Shows a dialog. */
  open(dialog: ComponentChildren): void
  close(): void
  /** Says a sentence about an action that is done. */
  say(text: string): void
}

export const ShellContext = createContext<Shell | undefined>(undefined)

export function useShell(): Shell {
  const shell = useContext(ShellContext)
  if (!shell) throw new Error('no shell')
  return shell
}

/** What policies do with clients on a list. Empty where none of them uses it. */
export function useListEffects(): (list: string) => readonly ('allow' | 'deny')[] {
  const { listEffects = {} } = useShell().about.features
  return (list) => (Object.hasOwn(listEffects, list) && listEffects[list]) || []
}

/** The same with the name of the list, in words. */
export function useListText(): (list: string) => string {
  const effectsOf = useListEffects()
  return (list) => {
    const words = effectsOf(list).map((effect) => (effect === 'allow' ? 'allows' : 'denies'))
    return `${list}: ${words.join(' and ') || 'no limiter that this console was given uses it'}`
  }
}
