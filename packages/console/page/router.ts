import { useEffect, useState } from 'preact/hooks'
import type { Identity } from './answers.js'

/** What a page shows first, such as a list: names that operators have given, and clients as random ids. */
export type Query = Readonly<Record<string, string>>

/** A page, and its client: that is in the state of the history, as identities stand in no address. */
export interface Place {
  readonly page: string
  readonly query: Query
  readonly identity: Identity | undefined
}

const MOVED = 'sluice-moved'

function here(): Place {
  const [page = '', query] = location.hash.replace(/^#\/?/, '').split('?', 2)
  return {
    page: page || 'overview',
    query: Object.fromEntries(new URLSearchParams(query)),
    identity: page === 'client' ? history.state?.identity : undefined,
  }
}

/** The address of a page, for links. */
export function addressOf(page: string, query: Query): string {
  return `#/${page}?${new URLSearchParams(query)}`
}

/** Opens a page. */
export function go(page: string, identity?: Identity): void {
  history.pushState(identity ? { identity } : null, '', `#/${page}`)
  dispatchEvent(new Event(MOVED))
}

/** Opens a page with a query, of which fields without a value are left out. */
export function goWith(page: string, query: Readonly<Record<string, string | undefined>>): void {
  const given = Object.entries(query).filter(([, value]) => value !== undefined) as [string, string][]
  const text = new URLSearchParams(given).toString()
  go(text === '' ? page : `${page}?${text}`)
}

export function usePlace(): Place {
  const [place, setPlace] = useState(here)
  useEffect(() => {
    const move = () => setPlace(here())
    for (const event of ['hashchange', 'popstate', MOVED]) addEventListener(event, move)
    return () => {
      for (const event of ['hashchange', 'popstate', MOVED]) removeEventListener(event, move)
    }
  }, [])
  return place
}
