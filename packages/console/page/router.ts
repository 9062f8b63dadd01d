import { useEffect, useState } from 'preact/hooks'
import type { Identity } from './answers.js'

/** A page, and its client: that is in the state of the history, as identities stand in no address. */
export interface Place {
  readonly page: string
  readonly identity: Identity | undefined
}

const MOVED = 'sluice-moved'

function here(): Place {
  const page = location.hash.replace(/^#\/?/, '') || 'overview'
  return { page, identity: page === 'client' ? history.state?.identity : undefined }
}

/** Opens a page. */
export function go(page: string, identity?: Identity): void {
  history.pushState(identity ? { identity } : null, '', `#/${page}`)
  dispatchEvent(new Event(MOVED))
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
