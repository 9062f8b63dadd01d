import type { Units } from '@sluice/core'
import { invalidPolicy, neverWithout, optionalFunction, wholeNumber } from '@sluice/core/internal'
import type { OutboundOptions, OutboundRequest } from '../options.js'
import { headersOf } from '../quota/headers.js'
import type { QuotaSource } from '../quota/quota-types.js'
import { warnOnce } from '../warn-once.js'
import { documentsOf } from './documents.js'
import { estimatedTokens, TOKEN_UNITS, tokensReader } from './tokens.js'

/** Takes the bytes of a response as they pass. */
export interface BodyMeter {
  add(bytes: Uint8Array): void
  /** Settles the charge, once. `isWhole`: whether the body has ended, and not broken off. */
  end(isWhole: boolean): void
}

/** Replaces the charged units by the actual ones. Never throws. */
export type Settle = (actual: Units) => void

/** What requests cost before they are sent, and how their responses tell what they have cost. */
export class Costs {
  readonly #where: string
  readonly #counted: ReadonlySet<string>
  readonly #cost: OutboundOptions['cost']
  readonly #usage: OutboundOptions['usage']
  readonly #countsTokens: boolean
  readonly #warn: (error: unknown) => void

  /** @throws SluiceError `INVALID_POLICY` */
  constructor({ name = 'fetch', limits = [], cost, usage }: OutboundOptions) {
    this.#where = `policy "${name}"`
    this.#counted = new Set(limits.map(({ unit }) => unit))
    this.#countsTokens = TOKEN_UNITS.some((unit) => this.#counted.has(unit))
    optionalFunction(this.#where, 'usage', usage)
    if (cost !== undefined && limits.length === 0) neverWithout(this.#where, 'cost', 'limits', cost)
    if ((typeof cost === 'object' && cost) || typeof cost === 'number') this.#check('cost', unitsIn(cost))
    else optionalFunction(this.#where, 'cost', cost)
    this.#cost = cost
    this.#usage = usage
    this.#warn = warnOnce(this.#where, 'usage')
  }

  /** Whether the body of a request matters. */
  get readsBodies(): boolean {
    return this.#countsTokens || typeof this.#cost === 'function'
  }

  /** The units of a request, as far as they are known before it is sent. */
  of(request: OutboundRequest): Units {
    const estimate = (this.#countsTokens && estimatedTokens(request.body)) || {}
    const cost = typeof this.#cost === 'function' ? this.#cost(request) : this.#cost
    return { ...this.#known(estimate), ...(cost !== undefined && unitsIn(cost)) }
  }

  /** Meters the body of a response. Undefined for one that tells nothing: it has failed, or is no JSON. */
  meter({ status, headers }: QuotaSource, charged: Units, settle: Settle): BodyMeter | undefined {
    if (!this.#usage && !this.#countsTokens) return undefined
    if (status >= 400) {
      // Permits are released, and a refused request has been one.
      const own = Object.keys(charged).filter((unit) => unit !== 'requests' && unit !== 'concurrent-requests')
      if (own.length > 0) settle(Object.fromEntries(own.map((unit) => [unit, 0])))
      return undefined
    }
    let told: Units = {}
    const usageIn = this.#reader()
    const documents = documentsOf(headersOf(headers).get('content-type') ?? '', (document) => {
      told = { ...told, ...usageIn(document) }
    })
    if (!documents) return undefined
    let isOver = false
    return {
      add: (bytes) => documents.add(bytes),
      end: (isWhole) => {
        if (isOver) return
        isOver = true
        if (isWhole) documents.end()
        // The service may have used more than it could tell.
        const least = isWhole ? {} : charged
        const actual = Object.entries(told).map(([unit, units]) => [unit, Math.max(units, least[unit] ?? 0)])
        if (actual.length > 0) settle(Object.fromEntries(actual))
      },
    }
  }

  /** Reads what one response has used from each of its documents. The last one counts. */
  #reader(): (document: unknown) => Units | undefined {
    const usage = this.#usage
    if (!usage) {
      const read = tokensReader()
      return (document) => this.#known(read(document))
    }
    return (document) => {
      try {
        const units = usage(document)
        return units && this.#check('usage', units)
      } catch (error) {
        this.#warn(error)
        return undefined
      }
    }
  }

  #known(units: Units = {}): Units {
    return Object.fromEntries(Object.entries(units).filter(([unit]) => this.#counted.has(unit)))
  }

  /** @throws SluiceError `INVALID_POLICY`: a unit that no limit counts would be charged nowhere */
  #check(field: string, units: Units): Units {
    for (const [unit, amount] of Object.entries(units)) {
      if (!this.#counted.has(unit)) {
        invalidPolicy(this.#where, field, `units that its limits count, ${[...this.#counted].join(' or ')}`, unit)
      }
      wholeNumber(this.#where, `${field}: ${unit}`, amount, 0)
    }
    return units
  }
}

/** A number is of requests. */
function unitsIn(cost: number | Units): Units {
  return typeof cost === 'number' ? { requests: cost } : cost
}
