import fc from 'fast-check'

/** A valid address: four bytes, or eight groups of 16 bits. */
export interface Address {
  readonly key: string
  /** The same address, in all spellings that proxies, sockets and people use. */
  readonly spellings: fc.Arbitrary<string>
}

const hex = (group: number) => group.toString(16)
const byte = fc.oneof(fc.nat(255), fc.constantFrom(0, 1, 127, 255))
const group = fc.oneof(
  { weight: 2, arbitrary: fc.constantFrom(0, 0, 0, 1, 0xffff, 0x64, 0xff9b, 0x2001, 0xdb8, 0xfe80) },
  { weight: 1, arbitrary: fc.nat(0xffff) },
)

/** Upper case and leading zeros, group by group. */
function groupText(value: number): fc.Arbitrary<string> {
  return fc.constantFrom(hex(value), hex(value).toUpperCase(), hex(value).padStart(4, '0'))
}

/** The groups of an IPv6 address as text, with or without omitted zeros, and with the end in bytes or not. */
function groupsText(groups: readonly number[]): fc.Arbitrary<string> {
  const end = groups.slice(6).flatMap((group) => [group >> 8, group & 255])
  return fc.boolean().chain((inBytes) => {
    const shown = inBytes ? groups.slice(0, 6) : groups
    return fc
      .tuple(fc.tuple(...shown.map(groupText)), fc.option(fc.constantFrom(...zeroRuns(shown)), { nil: undefined }))
      .map(([texts, zeros]) => {
        const tail = inBytes ? [end.join('.')] : []
        if (!zeros) return [...texts, ...tail].join(':')
        return `${texts.slice(0, zeros[0]).join(':')}::${[...texts.slice(zeros[1]), ...tail].join(':')}`
      })
  })
}

/** The ranges of zeros that may be omitted, each with its start and its exclusive end. */
function zeroRuns(groups: readonly number[]): (readonly [number, number] | undefined)[] {
  const runs = groups.flatMap((_, from) =>
    groups.flatMap((_, to) =>
      to >= from && groups.slice(from, to + 1).every((g) => g === 0) ? [[from, to + 1] as const] : [],
    ),
  )
  return runs.length > 0 ? runs : [undefined]
}

/** With a zone, brackets, or both and a port. */
function dressed(address: string): fc.Arbitrary<string> {
  return fc.constantFrom(
    address,
    `${address}%eth0`,
    `${address}%25en1`,
    `[${address}]`,
    `[${address}]:443`,
    `[${address}%eth0]:65535`,
  )
}

const of6 = (groups: readonly number[]) => groupsText(groups).chain(dressed)

/** The address itself, and every IPv6 form of the same address. */
const v4: fc.Arbitrary<Address> = fc.tuple(byte, byte, byte, byte).map((bytes) => {
  const [a, b, c, d] = bytes
  const key = bytes.join('.')
  const low = [(a << 8) | b, (c << 8) | d]
  const spellings = fc.oneof(
    fc.constantFrom(key, `${key}:5555`, `${key}:0`, `::ffff:${key}`, `[${key}]`, `[${key}]:80`),
    of6([0, 0, 0, 0, 0, 0xffff, ...low]),
    of6([0x64, 0xff9b, 0, 0, 0, 0, ...low]),
  )
  return { key, spellings }
})

/** IPv6, which counts by its first four groups. */
const v6: fc.Arbitrary<Address> = fc
  .array(group, { minLength: 8, maxLength: 8 })
  .filter((groups) => !standsForV4(groups))
  .map((groups) => ({ key: `${shortest(groups.slice(0, 4))}/64`, spellings: of6(groups) }))

function standsForV4(groups: readonly number[]): boolean {
  const start = groups.slice(0, 6).map(hex).join(':')
  return start === '0:0:0:0:0:ffff' || start === '64:ff9b:0:0:0:0'
}

/** A network whose last four groups are 0 by RFC 5952, as the URL parser of Node writes it. */
function shortest(network: readonly number[]): string {
  return new URL(`http://[${[...network, 0, 0, 0, 0].map(hex).join(':')}]/`).hostname.slice(1, -1)
}

export const address: fc.Arbitrary<Address> = fc.oneof(v4, v6)

/** A spelling of some address, and its key. */
export const spelt: fc.Arbitrary<{ readonly key: string; readonly text: string }> = address.chain(
  ({ key, spellings }) => spellings.map((text) => ({ key, text })),
)

/** Parts of a forwarded-for field that are no addresses. */
export const noAddress: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(
    ...['unknown', '_hidden', '1.2.3', '1.2.3.4.5', '256.1.1.1', '01.2.3.4', '0x7f.0.0.1', '2130706433', '1.2.3.4/8'],
    ...[
      '::ffff:256.1.1.1',
      '1::2::3',
      ':::',
      '[::1',
      '::1]',
      'g::1',
      '12345::',
      '1:2:3:4:5:6:7:8:9',
      '%eth0',
      'localhost',
    ],
    ...[
      '1.2.3.4:',
      '[1.2.3.4',
      '1.2.3.4:5:6',
      'for=1.2.3.4',
      '"[::1]"',
      '1.2.3.4;',
      '__proto__',
      '-1.2.3.4',
      '１.2.3.4',
    ],
  ),
  fc.string({ unit: fc.constantFrom(...'0123456789abcdef:.[]%/ _x'), maxLength: 45 }),
  fc.string({ unit: 'binary', maxLength: 30 }),
)
