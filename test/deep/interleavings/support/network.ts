import type { Step } from './explore.js'

/** One call: sent, executed by its server, and replied to. */
interface Call {
  readonly client: string
  readonly server: string
  readonly name: string
  state: 'sent' | 'late' | 'ran'
  run(): unknown
  answer: unknown
  /** The error that the server threw instead of a reply. */
  refusal: Error | undefined
  resolve(answer: unknown): void
  reject(error: Error): void
}

/** The outcome of a call, for checks of it. */
export interface Fate {
  /** Whether the server has executed it. */
  ran: boolean
  /** Whether its caller received a failure. */
  failed: boolean
  answer: unknown
}

export interface NetworkOptions {
  /** The number of calls that may fail: lost, executed without a reply, or executed after their caller gave up. */
  readonly faults?: number
  /**
   * Whether a reply is a separate step, later than the execution. Where callers only make further calls after a reply, this
   * adds nothing, as those calls may be as late. @default false
   */
  readonly lateReplies?: boolean
  /** Whether calls of one client to one server stay in order, as on one connection. @default false */
  readonly inOrder?: boolean
}

/**
 * Calls between clients and servers. The arrival of a call, the arrival of its reply, and each fault are separate steps.
 */
export class Network {
  readonly #calls = new Set<Call>()
  readonly #inOrder: boolean
  readonly #lateReplies: boolean
  #faults: number
  /** The events at each server and client, in order, which determine the whole state. */
  readonly #histories = new Map<string, string[]>()
  readonly #fates = new Map<string, Fate>()

  constructor({ faults = 0, inOrder = false, lateReplies = false }: NetworkOptions = {}) {
    this.#faults = faults
    this.#inOrder = inOrder
    this.#lateReplies = lateReplies
  }

  get isQuiet(): boolean {
    return this.#calls.size === 0
  }

  /** Sends a call. Names are unique. */
  call<Answered>(client: string, server: string, name: string, run: () => Answered): Promise<Awaited<Answered>> {
    return new Promise((resolve, reject) => {
      if (this.#fates.has(name)) throw new Error(`two calls are named ${name}`)
      this.#fates.set(name, { ran: false, failed: false, answer: undefined })
      const call: Call = {
        client,
        server,
        name,
        state: 'sent',
        run,
        answer: undefined,
        refusal: undefined,
        resolve: resolve as never,
        reject,
      }
      this.#calls.add(call)
    })
  }

  /** Records an event beside calls, such as a step of a clock or the end of a process. */
  note(place: string, what: string): void {
    const history = this.#histories.get(place)
    if (history) history.push(what)
    else this.#histories.set(place, [what])
  }

  fate(name: string): Fate | undefined {
    return this.#fates.get(name)
  }

  steps(): Step[] {
    const steps: Step[] = []
    const asked = new Set<string>()
    const answered = new Set<string>()
    for (const call of this.#calls) {
      const { client, server, name, state } = call
      const connection = `${client} ${server}`
      if (state === 'ran') {
        if (this.#isBehind(answered, connection)) continue
        steps.push({ name: `the reply to ${name} arrives`, take: () => this.#answer(call) })
        if (this.#faults > 0)
          steps.push({ name: `the reply to ${name} is lost`, take: () => this.#fail(call, 'unreported') })
        continue
      }
      // A reply comes after those to earlier calls.
      answered.add(connection)
      if (this.#isBehind(asked, connection)) continue
      const isLate = state === 'late'
      const runs = `${server} runs ${name}`
      if (this.#lateReplies || isLate) steps.push({ name: runs, take: () => this.#run(call) })
      else steps.push({ name: `${runs} and replies`, take: () => this.#run(call).then(() => this.#answer(call)) })
      if (!isLate && this.#faults > 0) {
        if (!this.#lateReplies) {
          const take = () => this.#run(call).then(() => this.#fail(call, 'unreported'))
          steps.push({ name: `${runs} and the reply is lost`, take })
        }
        steps.push({ name: `${name} is lost`, take: () => this.#fail(call, 'lost') })
        steps.push({
          name: `the caller of ${name} gives up, and the call continues`,
          take: () => this.#fail(call, 'late'),
        })
      }
    }
    return steps
  }

  state(): string {
    const histories = [...this.#histories].map(([place, history]) => `${place}: ${history.join(', ')}`)
    return histories.sort().join('\n')
  }

  #isBehind(seen: Set<string>, connection: string): boolean {
    if (!this.#inOrder) return false
    const isBehind = seen.has(connection)
    seen.add(connection)
    return isBehind
  }

  async #run(call: Call): Promise<void> {
    const { server, name, state } = call
    this.note(server, name)
    const fate = this.#fates.get(name) as Fate
    fate.ran = true
    try {
      fate.answer = call.answer = await call.run()
    } catch (error) {
      call.refusal = error as Error
    }
    if (state === 'late') this.#calls.delete(call)
    else call.state = 'ran'
  }

  #answer(call: Call): void {
    this.#calls.delete(call)
    this.note(call.client, call.name)
    if (call.refusal) call.reject(call.refusal)
    else call.resolve(call.answer)
  }

  #fail(call: Call, how: 'lost' | 'late' | 'unreported'): void {
    this.#faults--
    this.note(call.client, `${call.name} ${how}`)
    ;(this.#fates.get(call.name) as Fate).failed = true
    if (how === 'late') call.state = 'late'
    else this.#calls.delete(call)
    call.reject(new Error(`${call.name}: ${how}`))
  }
}
