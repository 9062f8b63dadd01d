import { createLimiter, memoryStore, type Store } from '@sluice/core'
import { CONSOLE_LIMITER, type SharedNotes, sharedNotesOf, textValue } from '@sluice/core/internal'
import { Problem } from '../problem.js'

/** How long the id of a client in an address resolves, in ms. */
const ID_MS = 604_800_000
/** Ids that an operator is given in an hour: each takes two keys of the store for a week. */
const MAX_AN_HOUR = 100

/** Random ids that stand for clients in addresses of the page. */
export class ClientIds {
  readonly #notes: SharedNotes | undefined
  readonly #limiter = createLimiter({ name: CONSOLE_LIMITER, store: memoryStore(), limit: MAX_AN_HOUR, window: '1h' })

  constructor(store: Store) {
    this.#notes = sharedNotesOf(store)
  }

  /** An id that resolves for a week. @param identity as text @throws Problem; SluiceError `STORE_UNAVAILABLE` */
  async idOf(identity: string, operator: string): Promise<string> {
    const notes = notesIn(this.#notes, 'ids of clients')
    const { allowed, retryAfterMs = 0 } = await this.#limiter.consume(operator)
    if (!allowed) throw new Problem(429, `the console gives an operator ${MAX_AN_HOUR} ids an hour`, { retryAfterMs })
    const [id] = await notes.idsOf([identity], ID_MS)
    return id as string
  }

  /** An operator looks at this client: its id, which is in an address, resolves for another week. `null` for one that has ended. */
  async clientOf(id: string): Promise<{ readonly kind: string; readonly value: string } | null> {
    const notes = notesIn(this.#notes, 'ids of clients')
    const [identity] = await notes.identitiesOf([id])
    if (identity === undefined) return null
    await notes.idsOf([identity], ID_MS)
    return textValue(identity)
  }
}

/** @throws Problem */
export function notesIn(notes: SharedNotes | undefined, what: string): SharedNotes {
  if (notes) return notes
  throw new Problem(501, `this store keeps no ${what}`)
}
