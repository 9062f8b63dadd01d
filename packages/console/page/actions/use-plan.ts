import { useEffect, useState } from 'preact/hooks'
import { ask, Refused } from '../api.js'

/** A pause in typing, before the plan is asked for. */
const PAUSE_MS = 250

/** The effect that an action would have, as a route says it. An undefined `body` asks nothing. */
export function usePlan<Plan>(path: string, body: object | undefined) {
  const text = JSON.stringify(body)
  const [found, setFound] = useState<{ plan?: Plan; failure?: Refused; of?: string | undefined }>({})
  useEffect(() => {
    if (text === undefined) return
    const ending = new AbortController()
    const timer = setTimeout(() => {
      ask<Plan>(path, JSON.parse(text), ending.signal).then(
        (plan) => setFound({ plan, of: text }),
        (failure: unknown) => failure instanceof Refused && setFound({ failure, of: text }),
      )
    }, PAUSE_MS)
    return () => {
      clearTimeout(timer)
      ending.abort()
    }
  }, [path, text])
  return found.of === text ? found : { plan: undefined, failure: undefined }
}
