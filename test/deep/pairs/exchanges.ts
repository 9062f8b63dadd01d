import type { Held, Model } from './model.js'

/** A connection, with the exchanges whose responses are not over, in their order. */
interface Line {
  readonly open: Exchange[]
  hasClosed: boolean
}

/** Node reads no further from a connection with many responses that wait, and then does not notice its end. */
const MAX_OPEN = 8

interface Exchange {
  readonly line: Line
  readonly held: Held
  /** Upgrades come on connections of their own. */
  readonly isUpgrade: boolean
  /** Of the head, if the handler has written it. */
  status: number | undefined
  /** Whether the handler is done. */
  isDone: boolean
  /** Whether the response is sent, or cannot be. */
  isOver: boolean
}

/** What becomes of requests over HTTP: docs/guarantees.md, Requests in flight, and docs/websockets.md. */
export class Exchanges {
  readonly #model: Model
  readonly #all = new Map<object, Exchange>()

  constructor(model: Model) {
    this.#model = model
  }

  add(of: object, held: Held, behind: object | undefined, isUpgrade: boolean): void {
    const line = behind ? this.#of(behind).line : { open: [], hasClosed: false }
    const exchange = { line, held, isUpgrade, status: undefined, isDone: false, isOver: false }
    this.#all.set(of, exchange)
    line.open.push(exchange)
  }

  isConnected(of: object): boolean {
    return !this.#of(of).line.hasClosed
  }

  takesMore(of: object): boolean {
    const { isUpgrade, line } = this.#of(of)
    return this.isConnected(of) && !isUpgrade && line.open.length < MAX_OPEN
  }

  /** Whether the server notices that the client of this request leaves. */
  canLeave(of: object): boolean {
    const { isUpgrade, isDone } = this.#of(of)
    return this.isConnected(of) && (!isUpgrade || isDone)
  }

  canBegin(of: object): boolean {
    const { status, isUpgrade } = this.#of(of)
    return this.isConnected(of) && status === undefined && !isUpgrade
  }

  begin(of: object, status: number): void {
    this.#of(of).status = status
  }

  canEnd(of: object): boolean {
    return !this.#of(of).isDone
  }

  end(of: object, status: number): void {
    const exchange = this.#of(of)
    exchange.isDone = true
    // Its client has left before: the permit was held until now.
    if (exchange.isOver) {
      this.#model.release(exchange.held)
      return
    }
    exchange.status ??= status
    if (!exchange.isUpgrade) this.#advance(exchange.line)
    // An accepted upgrade is a success at once, and holds its permit until the socket closes.
    else if (status === 101) this.#model.outcome(exchange.held, status)
    else this.close(of)
  }

  /** The connection ends. */
  close(of: object): void {
    const { line } = this.#of(of)
    line.hasClosed = true
    for (const exchange of line.open.splice(0)) {
      exchange.isOver = true
      const { held, status, isUpgrade } = exchange
      this.#model.outcome(held, status)
      // A handler that has not begun to respond goes on. One that destroys the socket of an upgrade is done.
      if (status !== undefined || isUpgrade) this.#model.release(held)
    }
  }

  /** Responses leave in the order of their requests. */
  #advance({ open }: Line): void {
    while (open[0]?.isDone) {
      const exchange = open.shift() as Exchange
      exchange.isOver = true
      this.#model.responded(exchange.held, exchange.status as number)
    }
  }

  #of(of: object): Exchange {
    return this.#all.get(of) as Exchange
  }
}
