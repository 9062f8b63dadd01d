import { SluiceError } from '@sluice/core'
import { invalidPolicy } from '@sluice/core/internal'
import { announce } from '../announce.js'
import type { OutboundOptions } from '../options.js'
import { Circuit } from './circuit.js'

const USUAL_K = 2
const MAX_ORIGINS = 1000

/** The circuits of the origins that a client calls. */
export class Circuits {
  readonly #policy: string
  readonly #k: number
  readonly #circuits = new Map<string, Circuit>()

  constructor(policy: string, k: number) {
    this.#policy = policy
    this.#k = k
  }

  /** Lets a request to an origin pass. @throws SluiceError `CIRCUIT_OPEN` */
  check(origin: string): void {
    const circuit = this.#of(origin)
    const now = performance.now()
    if (circuit.admits(now, Math.random())) return
    announce(this.#policy, 'unsent')
    const { requests, accepts } = circuit.counts(now)
    const message = `policy "${this.#policy}": fetch of ${origin}: the service fails: of ${requests} requests in 2 minutes, ${accepts} succeeded`
    throw new SluiceError('CIRCUIT_OPEN', message)
  }

  ended(origin: string, isAccepted: boolean): void {
    this.#of(origin).ended(performance.now(), isAccepted)
  }

  #of(origin: string): Circuit {
    const known = this.#circuits.get(origin)
    if (known) return known
    const [oldest] = this.#circuits.keys()
    if (oldest !== undefined && this.#circuits.size >= MAX_ORIGINS) this.#circuits.delete(oldest)
    const circuit = new Circuit(this.#k)
    this.#circuits.set(origin, circuit)
    return circuit
  }
}

/** Undefined where the option is off. @throws SluiceError `INVALID_POLICY` */
export function circuitsOf({ name = 'fetch', circuit = false }: OutboundOptions): Circuits | undefined {
  if (circuit === false) return undefined
  const k = circuit === true ? USUAL_K : circuit
  const isInRange = typeof k === 'number' && k >= 1 && k <= 100
  return isInRange
    ? new Circuits(name, k)
    : invalidPolicy(`policy "${name}"`, 'circuit', 'true, false or a number from 1 to 100', circuit)
}
