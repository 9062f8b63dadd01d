import { createHmac } from 'node:crypto'
import { addressText, ipAddress, ipRange, networkOf } from '@sluice/core/internal'

/** Characters of 6 bits each: two identities do not share them by chance. */
const LENGTH = 16
/** HMACs that are remembered, and addresses with theirs: clients come again. */
const MAX_KNOWN = 20_000

/** An address, as records have it. */
export interface HashedAddress {
  readonly hashes: readonly string[]
  /** Whether requests of its network are recorded. */
  readonly isRecorded: boolean
}

/** HMACs of identities by one secret. */
export class Hashes {
  /** Tells whether recordings are by the same secret. */
  readonly fingerprint: string
  readonly #secret: string
  readonly #share: number
  readonly #known = new Map<string, string>()
  readonly #addresses = new Map<string, HashedAddress>()

  constructor(secret: string, share: number) {
    this.#secret = secret
    this.#share = share
    this.fingerprint = this.#digest('sluice recording').toString('base64url').slice(0, LENGTH)
  }

  /** The HMAC that log lines have of this identity, too. */
  of(kind: string, value: string): string {
    const text = `${kind}:${value}`
    return remembered(this.#known, text, () => this.#digest(text).toString('base64url').slice(0, LENGTH))
  }

  /**
   * Of a client's address. Undefined if there is none.
   *
   * @param ip of the connection, or that of a trusted proxy
   * @param counted the value of the identity `ip`, if the request has one
   */
  ofAddress(ip: string | undefined, counted: string | undefined): HashedAddress | undefined {
    if (ip === undefined && counted === undefined) return undefined
    // Most often both are the same text, and no text of a client has a line break.
    const key = ip === undefined || ip === counted ? (counted as string) : `${ip}\n${counted}`
    return remembered(this.#addresses, key, () => this.#hashed(ip, counted))
  }

  /** Whether requests without an address are recorded that have this as their first identity. */
  isRecorded(identity: string): boolean {
    return this.#share === 1 || this.#digest(`share ${identity}`).readUInt32LE() < this.#share * 2 ** 32
  }

  #hashed(ip: string | undefined, counted: string | undefined): HashedAddress {
    const words = wordsOf(ip, counted)
    // No address, such as that of a Unix socket.
    if (!words) return { hashes: [], isRecorded: this.isRecorded(`ip=${counted ?? ip}`) }
    const networks = words.length === 1 ? [networkOf(words, 24)] : [networkOf(words, 48), networkOf(words, 64)]
    const hashes = [...networks, addressText(words)].map((text) => this.of('ip', text))
    return { hashes, isRecorded: this.isRecorded(`ip=${networks[0]}`) }
  }

  #digest(text: string): Buffer {
    return createHmac('sha256', this.#secret).update(text).digest()
  }
}

/** The address that limits count. A key may take it from elsewhere, such as a header of a CDN. */
function wordsOf(ip: string | undefined, counted: string | undefined): readonly number[] | undefined {
  const address = ip === undefined ? undefined : ipAddress(ip)
  const range = counted === undefined ? undefined : ipRange(counted)
  if (!range) return address?.first
  const isWithin = address?.isIPv4 === range.isIPv4 && isBetween(range.first, address.first, range.last)
  return isWithin ? address.first : range.first
}

function isBetween(first: readonly number[], words: readonly number[], last: readonly number[]): boolean {
  return compared(first, words) <= 0 && compared(words, last) <= 0
}

function compared(one: readonly number[], other: readonly number[]): number {
  const i = one.findIndex((word, i) => word !== other[i])
  return i < 0 ? 0 : (one[i] as number) - (other[i] as number)
}

function remembered<Value>(known: Map<string, Value>, key: string, make: () => Value): Value {
  let value = known.get(key)
  if (value === undefined) {
    if (known.size >= MAX_KNOWN) known.clear()
    value = make()
    known.set(key, value)
  }
  return value
}
