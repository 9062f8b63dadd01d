import { useEffect, useState } from 'preact/hooks'
import { ask } from '../api.js'
import { useShell } from '../context.js'

/** A pause in which identities of one page gather, in ms. */
const PAUSE_MS = 30
/** Identities of a request: as many as its body has room for, whatever they are. */
const AT_A_TIME = 50
/** A name is asked for again after as long, in ms, and so many are remembered. */
const KEPT_MS = 60_000
const MAX_KNOWN = 5000
/** Names that came too late are asked for again after as long, in ms, so many times in a row. */
const AGAIN_MS = 5000
const MAX_TRIES = 3
/** Kinds without names: their values are secrets, or composed. */
const NAMELESS = /^(?:header:|cookie:|credentials$)|\+/
const MAX_VALUE = 256
const NAMED = 'sluice-named'

interface Asked {
  readonly kind: string
  readonly value: string
}

const known = new Map<string, { readonly name: string | null; readonly at: number }>()
const wanted = new Map<string, Asked>()

async function askWanted(): Promise<void> {
  const all = [...wanted.values()]
  wanted.clear()
  await askAll(all, MAX_TRIES)
}

async function askAll(all: readonly Asked[], tries: number): Promise<void> {
  for (let at = 0; at < all.length; at += AT_A_TIME) {
    const identities = all.slice(at, at + AT_A_TIME)
    // Without a name, an identity stands by itself.
    const { names, isLate = false } = await ask<Names>('/api/names', { identities }).catch(() => NONE)
    for (const [i, identity] of identities.entries()) remember(keyOf(identity), names[i] ?? null)
    dispatchEvent(new Event(NAMED))
    const late = isLate ? identities.filter((_, i) => (names[i] ?? null) === null) : []
    if (late.length > 0 && tries > 1) setTimeout(() => void askAll(late, tries - 1), AGAIN_MS)
  }
}

interface Names {
  readonly names: readonly (string | null)[]
  readonly isLate?: boolean
}

const NONE: Names = { names: [], isLate: true }

function remember(key: string, name: string | null): void {
  known.delete(key)
  known.set(key, { name, at: Date.now() })
  const [oldest] = known.keys()
  if (known.size > MAX_KNOWN && oldest !== undefined) known.delete(oldest)
}

function want(identity: Asked): void {
  const key = keyOf(identity)
  if (NAMELESS.test(identity.kind) || identity.value === '' || identity.value.length > MAX_VALUE) return
  if (Date.now() - (known.get(key)?.at ?? 0) < KEPT_MS) return
  if (wanted.size === 0) setTimeout(() => void askWanted(), PAUSE_MS)
  wanted.set(key, identity)
}

const keyOf = ({ kind, value }: Asked): string => `${kind}=${value}`

/** The name of an identity by the application, which is kept in this tab alone, for a minute. */
export function useName(kind: string, value: string): string | undefined {
  const isOn = useShell().about.features.names === true
  const key = keyOf({ kind, value })
  const [, redraw] = useState<string | null>()
  useEffect(() => {
    if (!isOn) return
    const look = () => redraw(known.get(key)?.name)
    addEventListener(NAMED, look)
    want({ kind, value })
    return () => removeEventListener(NAMED, look)
  }, [isOn, key])
  return (isOn && known.get(key)?.name) || undefined
}
