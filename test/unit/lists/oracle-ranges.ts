import { isIPv4 } from 'node:net'

/** A xorshift generator: the same numbers for the same seed. */
export function seeded(seed: number): () => number {
  let state = (seed * 2_654_435_761) >>> 0 || 1
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    state >>>= 0
    return state / 2 ** 32
  }
}

interface Interval {
  readonly bits: 32 | 128
  readonly first: bigint
  readonly last: bigint
}

/** Ranges as big integers, searched one by one. */
export class OracleRanges {
  readonly #intervals: readonly Interval[]

  constructor(ranges: readonly string[]) {
    this.#intervals = ranges.map(intervalOf)
  }

  sizeOf(range: string): bigint {
    const { first, last } = intervalOf(range)
    return last - first + 1n
  }

  /** The number of addresses in the smallest range that holds this one. */
  smallest(address: string): bigint | undefined {
    const { bits, first } = intervalOf(address)
    const sizes = this.#intervals
      .filter((each) => each.bits === bits && each.first <= first && first <= each.last)
      .map((each) => each.last - each.first + 1n)
    return sizes.sort((one, other) => (one < other ? -1 : 1))[0]
  }
}

function intervalOf(range: string): Interval {
  const [from = '', to] = range.split('-')
  if (to !== undefined) return { ...numberOf(from), last: numberOf(to).first }
  const [base = '', prefix] = range.split('/')
  const { bits, first } = numberOf(base)
  const free = BigInt(prefix === undefined ? 0 : bits - Number(prefix))
  const start = (first >> free) << free
  return { bits, first: start, last: start + (1n << free) - 1n }
}

/** Parsed from the form that URLs use: each IPv6 address has one spelling there, without dots. */
function numberOf(address: string): { bits: 32 | 128; first: bigint } {
  if (isIPv4(address)) {
    return { bits: 32, first: address.split('.').reduce((sum, byte) => (sum << 8n) | BigInt(byte), 0n) }
  }
  const [head = '', tail] = new URL(`http://[${address}]/`).hostname.slice(1, -1).split('::')
  const front = head.split(':').filter(Boolean)
  const back = (tail ?? '').split(':').filter(Boolean)
  const zeros = Array.from({ length: 8 - front.length - back.length }, () => '0')
  const first = [...front, ...zeros, ...back].reduce((sum, each) => (sum << 16n) | BigInt(`0x${each}`), 0n)
  return { bits: 128, first }
}

const part = (random: () => number) => Math.floor(random() * 3) * Math.floor(random() * 86)
const word = (random: () => number) =>
  (random() < 0.7 ? Math.floor(random() * 4) : Math.floor(random() * 65_536)).toString(16)

/** Close together, so that ranges overlap and addresses lie at their edges. */
function anyAddress(random: () => number): string {
  return random() < 0.5
    ? `10.${Math.floor(random() * 3)}.${part(random)}.${part(random)}`
    : `2001:db8:${word(random)}:${word(random)}:${word(random)}::${word(random)}`
}

/** An address, a network or two addresses. */
export function randomRange(random: () => number): string {
  const address = anyAddress(random)
  const isV4 = isIPv4(address)
  const form = random()
  if (form < 0.2) return address
  if (form < 0.7) return `${address}/${isV4 ? 8 + Math.floor(random() * 25) : 32 + Math.floor(random() * 97)}`
  for (;;) {
    const other = anyAddress(random)
    if (isIPv4(other) !== isV4) continue
    return numberOf(address).first <= numberOf(other).first ? `${address}-${other}` : `${other}-${address}`
  }
}

/** Any address, or one at the edge of a range. */
export function randomAddress(random: () => number, ranges: readonly string[]): string {
  if (random() < 0.3) return anyAddress(random)
  const { bits, first, last } = intervalOf(ranges[Math.floor(random() * ranges.length)] as string)
  const edge = [first - 1n, first, last, last + 1n][Math.floor(random() * 4)] as bigint
  const number = edge < 0n || edge >= 1n << BigInt(bits) ? first : edge
  const size = bits === 32 ? 8 : 16
  const parts = Array.from(
    { length: bits / size },
    (_, i) => (number >> BigInt(bits - size * (i + 1))) & ((1n << BigInt(size)) - 1n),
  )
  return bits === 32 ? parts.join('.') : parts.map((each) => each.toString(16)).join(':')
}
