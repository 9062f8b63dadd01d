import { unreadable } from '../../redis/scripts/reply-reader.js'
import { run, runAt, type Server } from '../../redis/scripts/run.js'
import { changeScript, changesPageScript } from '../../redis/scripts/scripts.generated.js'
import type { ChangeState } from '../../store/entries.js'
import { type ChangeKeeper, type ChangesKept, type KeptChange, MAX_CHANGES_KEPT } from './change-log.js'

/** The life of the entries after the latest one. */
const LIFE_MS = 365 * 86_400_000

const STATES: Readonly<Record<string, ChangeState>> = { b: 'begun', d: 'done', f: 'failed' }

/** The entries of changes in Redis: a sorted set by their numbers. */
export class RedisChanges implements ChangeKeeper {
  readonly #server: Server
  readonly #key: string

  constructor(server: Server) {
    this.#server = server
    this.#key = `${server.prefix}changes`
  }

  async add(text: string): Promise<KeptChange> {
    const args = [String(LIFE_MS), String(MAX_CHANGES_KEPT), text]
    const reply = await runAt(this.#server, changeScript, [this.#key], args)
    const added = changeIn(String(reply))
    if (!added) throw unreadable('expected an entry of a change')
    return added
  }

  async replace(before: KeptChange, after: KeptChange): Promise<boolean> {
    const args = [String(LIFE_MS), String(after.number), memberOf(after), memberOf(before)]
    return Number(await runAt(this.#server, changeScript, [this.#key], args)) === 1
  }

  async page(below: number | undefined, max: number): Promise<ChangesKept> {
    const { connection, timeoutMs } = this.#server
    const args = [below === undefined ? '' : String(below), String(max)]
    const reply = await run(connection, timeoutMs, changesPageScript, () => ({ keys: [this.#key], args }))
    const [before, members] = Array.isArray(reply) ? reply : []
    if (!Array.isArray(members)) throw unreadable('expected entries of changes')
    const kept = members.flatMap((member) => changeIn(String(member)) ?? []).reverse()
    // Scores of members that are not ours may be fractions.
    return { kept, next: String(before) === '' ? undefined : Math.floor(Number(before)) + 1 }
  }
}

function memberOf({ number, at, state, text }: KeptChange): string {
  return `${state[0]}${number}:${at}:${text}`
}

/** Undefined for a text that is not ours. */
function changeIn(member: string): KeptChange | undefined {
  const [, letter = '', number, at, text] = /^([bdf])(\d{1,15}):(\d{1,15}):(.*)$/s.exec(member) ?? []
  return text === undefined
    ? undefined
    : { number: Number(number), at: Number(at), state: STATES[letter] as ChangeState, text }
}
