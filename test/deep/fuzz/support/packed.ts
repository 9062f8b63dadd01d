import fc from 'fast-check'

/** The numbers that a decision reports for one cell after its outcome: their widths in bytes, admitted and refused. */
type Form = readonly [admitted: readonly number[], refused: readonly number[]]

/** See the `report` of each cell in `lua/cells`. */
const bucket: Form = [
  [7, 6],
  [7, 6],
]
export const FORMS = {
  bucket,
  counter: bucket,
  log: [
    [6, 6, 4],
    [6, 6, 4, 7, 7],
  ],
  logOfTwo: [
    [6, 6, 4, 4],
    [6, 6, 4, 7, 7, 4, 7, 7],
  ],
  segments: [
    [7, 7, 6],
    [7, 7, 6, 7, 7],
  ],
  concurrency: [
    [7, 7],
    [7, 7, 7, 7],
  ],
} satisfies Record<string, Form>

const NOW = 1_900_000_000_000

/** Numbers as Redis reports them, and others. */
const likely = (usual: fc.Arbitrary<number>) =>
  fc.oneof(
    { weight: 12, arbitrary: usual },
    {
      weight: 1,
      arbitrary: fc.oneof(
        fc.nat(70_000),
        fc.constantFrom(0, NOW - 1, NOW - 10 ** 9, 2 ** 32 - 1, 2 ** 48 - 1, 2 ** 53 - 1, 2 ** 53, 2 ** 56 - 1),
      ),
    },
  )
const units = likely(fc.nat(8))
const instant = likely(fc.oneof(fc.constant(NOW), fc.integer({ min: NOW, max: NOW + 3000 })))
/** Only instants have this width. */
const numberOf = (width: number) => (width === 6 ? instant : units)

function bigEndian(value: number, bytes: number): Buffer {
  const packed = Buffer.alloc(8)
  packed.writeBigUInt64BE(BigInt(value))
  return packed.subarray(8 - bytes)
}

const packedAs = (widths: readonly number[]) =>
  fc.tuple(...widths.map(numberOf)).map((values) => widths.map((width, i) => bigEndian(values[i] as number, width)))

const blocked = fc
  .tuple(units, fc.string({ unit: 'binary', maxLength: 12 }))
  .map(([ms, reason]) => [
    bigEndian(2, 1),
    bigEndian(ms, 7),
    bigEndian(Buffer.byteLength(reason), 2),
    Buffer.from(reason),
  ])

/** Replies in the form of `lua/decide.lua` to a number of decisions on these cells, true or not. */
export function packed(cells: readonly Form[], decisions: number): fc.Arbitrary<Buffer> {
  const cellOf = ([admitted, refused]: Form, outcome: fc.Arbitrary<number>) =>
    outcome.chain((said) => {
      const widths = said % 2 === 0 ? refused : admitted
      // The refunds of a bucket come last.
      const all = said === 4 || said === 5 ? [...widths, 7, 6] : widths
      return packedAs(all).map((numbers) => [bigEndian(said, 1), ...numbers])
    })
  const all = (outcome: fc.Arbitrary<number>) => fc.tuple(...cells.map((cell) => cellOf(cell, outcome)))
  const single = fc.oneof(
    { weight: 9, arbitrary: all(fc.constant(1)) },
    { weight: 9, arbitrary: all(fc.constant(0)) },
    { weight: 1, arbitrary: all(fc.constantFrom(0, 1, 3, 6, 255)) },
    { weight: 2, arbitrary: all(fc.constant(4)) },
    { weight: 2, arbitrary: all(fc.constant(5)) },
    { weight: 2, arbitrary: blocked.map((bytes) => [bytes]) },
  )
  // Equal decisions: their number, the number admitted, and the reports of both outcomes.
  const equals = fc
    .tuple(likely(fc.constant(decisions)), units, single, fc.option(single))
    .map(([many, admitted, first, second]) => [
      [bigEndian(8, 1), bigEndian(many % 65_536, 2), bigEndian(admitted % 65_536, 2)],
      ...first,
      ...(second ?? []),
    ])
  const decision = fc.oneof({ weight: 4, arbitrary: single }, { weight: 1, arbitrary: equals })
  return fc
    .tuple(likely(fc.constant(NOW)), fc.array(decision, { minLength: decisions, maxLength: decisions }))
    .map(([at, said]) => Buffer.concat([bigEndian(at, 6), ...said.flat(2)]))
}

/** The same reply with invalid bytes. */
export function spoilt(whole: fc.Arbitrary<Buffer>): fc.Arbitrary<Buffer> {
  return fc.oneof(
    whole.map((bytes) => bytes.subarray(0, -1)),
    fc.tuple(whole, fc.uint8Array({ minLength: 1, maxLength: 9 })).map((parts) => Buffer.concat(parts)),
    fc.tuple(whole, fc.nat(200)).map(([bytes, end]) => bytes.subarray(0, end)),
    fc.tuple(whole, fc.nat(200), fc.nat(255)).map(([bytes, at, byte]) => {
      const changed = Buffer.from(bytes)
      changed[at % changed.length] = byte
      return changed
    }),
    fc.uint8Array({ maxLength: 80 }).map((bytes) => Buffer.from(bytes)),
    fc.constantFrom(Buffer.alloc(0), Buffer.alloc(1_000_000), Buffer.alloc(1_000_000, 255)),
  )
}
