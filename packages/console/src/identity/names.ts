import { isHash, isKind, isSecretKind } from '@sluice/core/internal'
import { warnOf } from '../warn.js'
import type { NamedIdentity, NameOf } from './given.js'
import { NO_CLIENTS } from './kinds.js'

/** The longest time for the names of a request, in ms. */
const WITHIN_MS = 1000
const LONGEST_NAME = 100
/** Calls of a request at a time. */
const AT_A_TIME = 10
/** Calls of all requests at a time, with those that were given up and have not ended. */
const MAX_RUNNING = 100
const running = new WeakMap<NameOf, number>()

export interface DisplayNames {
  /** In the order of the identities; `null` where there is none. */
  readonly names: readonly (string | null)[]
  /** Whether others may have a name, as the time was over. */
  readonly isLate: boolean
}

/** Names by the function of the application. Never rejects. */
export async function displayNames(nameOf: NameOf, identities: readonly NamedIdentity[]): Promise<DisplayNames> {
  const names: (string | null)[] = identities.map(() => null)
  const waiting = identities.entries()
  let isLate = false
  const work = async () => {
    for (const [i, identity] of waiting) {
      if (isLate) return
      if (isNamed(identity)) names[i] = await nameBy(nameOf, identity)
    }
  }
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<true>((resolve) => {
    timer = setTimeout(resolve, WITHIN_MS, true)
  })
  const done = Promise.all(Array.from({ length: AT_A_TIME }, work)).then(() => false)
  isLate = await Promise.race([done, late])
  clearTimeout(timer)
  if (isLate) warnOf(nameOf, 'nameOf', `it took ${WITHIN_MS / 1000} s`)
  // A copy, as late ones still write.
  return { names: [...names], isLate }
}

/** A hash is no value that the application knows, and paths are no clients. */
function isNamed({ kind, value }: NamedIdentity): boolean {
  const isClient = isKind(kind) && !kind.includes('+') && !isSecretKind(kind) && !NO_CLIENTS.includes(kind)
  return isClient && !isHash(value) && !HASHED_KEY.test(value)
}

/** A value of `hashedKey`. */
const HASHED_KEY = /^[\w-]{43}$/

async function nameBy(nameOf: NameOf, { kind, value }: NamedIdentity): Promise<string | null> {
  const count = running.get(nameOf) ?? 0
  if (count >= MAX_RUNNING) {
    warnOf(nameOf, 'nameOf', `${MAX_RUNNING} calls have not ended`)
    return null
  }
  running.set(nameOf, count + 1)
  try {
    const name: unknown = await nameOf({ kind, value })
    if (typeof name === 'string') return shortened(name)
    if (name !== undefined && name !== null) warnOf(nameOf, 'nameOf', `expected a text, got ${typeof name}`)
  } catch (error) {
    warnOf(nameOf, 'nameOf', error instanceof Error ? error.message : 'it threw no error')
  } finally {
    running.set(nameOf, (running.get(nameOf) ?? 1) - 1)
  }
  return null
}

/** By whole characters; before that by units, as a text may be huge. */
function shortened(name: string): string | null {
  const text = [...name.slice(0, 4 * LONGEST_NAME).trim()].slice(0, LONGEST_NAME).join('')
  return text === '' ? null : text
}
