import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { ask, Refused } from '../api.js'

const CHANGED = 'sluice-changed'
const AWAY = 'sluice-away'

/** Has the page ask how the store is: it has failed somewhere. */
export function tellAway(): void {
  dispatchEvent(new Event(AWAY))
}

/** Calls `listener` where the store has failed somewhere. */
export function useAway(listener: () => void): void {
  useEffect(() => {
    addEventListener(AWAY, listener)
    return () => removeEventListener(AWAY, listener)
  }, [listener])
}

const OUTAGE = 503
/** A store that failed as soon, such as at its deadline of 100 ms, is asked once more before that is told, after as long, in ms. */
const SOON_MS = 1000
const AGAIN_MS = 700

/** Has every part of the page ask again: something was changed. */
export function tellChanged(): void {
  dispatchEvent(new Event(CHANGED))
}

/** A number that grows every `everyMs` while the page is seen, and after each change. */
export function useAsked(everyMs: number | undefined): number {
  return useAsks(everyMs)[0]
}

function useAsks(everyMs: number | undefined): [number, () => void] {
  const [asks, setAsks] = useState(0)
  const reload = useCallback(() => setAsks((count) => count + 1), [])
  useEffect(() => {
    addEventListener(CHANGED, reload)
    const timer = everyMs === undefined ? undefined : setInterval(() => document.hidden || reload(), everyMs)
    return () => {
      removeEventListener(CHANGED, reload)
      clearInterval(timer)
    }
  }, [everyMs, reload])
  return [asks, reload]
}

export interface Asked<Answer> {
  /** The last answer, which may be older than `failedAt`. */
  readonly answer: Answer | undefined
  /** When the answer came, in ms since 1970. */
  readonly answeredAt: number | undefined
  readonly error: Refused | undefined
  /** Since when there is no answer, in ms since 1970. */
  readonly failedAt: number | undefined
  reload(): void
}

type State<Answer> = Omit<Asked<Answer>, 'reload'> & { readonly of: string }

/**
 * The answer of a route, asked again every `everyMs` while the page is seen, and after each change. Undefined asks nothing. An
 * earlier answer stays when a later one fails.
 */
export function useAsk<Answer>(path: string | undefined, body?: object, everyMs?: number): Asked<Answer> {
  const of = JSON.stringify([path, body])
  const [state, setState] = useState<State<Answer>>({ of, ...EMPTY })
  const bodyNow = useRef(body)
  bodyNow.current = body
  const [asks, reload] = useAsks(everyMs)

  // `of` is the body, and each of `asks` is one more request.
  useEffect(() => {
    if (path === undefined) return
    const ending = new AbortController()
    let again: ReturnType<typeof setTimeout> | undefined
    const look = () => {
      const since = Date.now()
      ask<Answer>(path, bodyNow.current, ending.signal).then(
        (answer) => setState({ of, answer, answeredAt: Date.now(), error: undefined, failedAt: undefined }),
        (error: unknown) => {
          if (ending.signal.aborted) return
          const isOutage = error instanceof Refused && error.status === OUTAGE
          if (isOutage) tellAway()
          if (isOutage && again === undefined && Date.now() - since < SOON_MS) {
            again = setTimeout(look, AGAIN_MS)
            return
          }
          setState((before) => ({
            of,
            answer: before.of === of ? before.answer : undefined,
            answeredAt: before.of === of ? before.answeredAt : undefined,
            error: error instanceof Refused ? error : new Refused(0, 'This page failed; reload it.'),
            failedAt: before.of === of ? (before.failedAt ?? Date.now()) : Date.now(),
          }))
        },
      )
    }
    look()
    return () => {
      ending.abort()
      clearTimeout(again)
    }
  }, [path, of, asks])

  return state.of === of ? { ...state, reload } : { ...EMPTY, reload }
}

const EMPTY = { answer: undefined, answeredAt: undefined, error: undefined, failedAt: undefined }

/** Pages of entries, one below the other. */
export function usePages<Entry>(path: string | undefined, body: object) {
  const first = useAsk<{ entries: readonly Entry[]; cursor?: string }>(path, body)
  const [more, setMore] = useState<{ of: unknown; entries: readonly Entry[]; cursor?: string | undefined }>()
  const [error, setError] = useState<Refused>()
  const added = more && more.of === first.answer ? more : undefined
  const cursor = added ? added.cursor : first.answer?.cursor
  return {
    ...first,
    error: first.error ?? error,
    entries: first.answer && [...first.answer.entries, ...(added?.entries ?? [])],
    /** Absent on the last page. */
    next:
      cursor === undefined || path === undefined
        ? undefined
        : async () => {
            try {
              const page = await ask<{ entries: readonly Entry[]; cursor?: string }>(path, { ...body, cursor })
              setMore({
                of: first.answer,
                entries: [...(added?.entries ?? []), ...page.entries],
                cursor: page.cursor,
              })
              setError(undefined)
            } catch (failure) {
              setError(failure as Refused)
            }
          },
  }
}
