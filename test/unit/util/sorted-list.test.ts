import { expect, test } from 'vitest'
import { SortedList } from '../../../packages/core/src/util/sorted-list.js'

test('SortedList keeps thousands of items in order through any additions and removals', () => {
  const list = new SortedList<{ readonly at: number }>((a, b) => a.at < b.at)
  const model: { readonly at: number }[] = []
  const draw = numbers(7)
  // Grows to about 3,000 items, then shrinks to none.
  for (let step = 0; step < 12_000; step++) {
    const isAdded = model.length === 0 || draw() < (step < 6000 ? 0.75 : 0.25)
    if (isAdded) {
      const item = { at: draw() }
      list.add(item)
      model.push(item)
    } else list.remove(model.splice(Math.floor(draw() * model.length), 1)[0] as { at: number })
    if (step % 500 !== 0) continue
    model.sort((a, b) => a.at - b.at)
    expect([...list]).toEqual(model)
    expect(list.arrays.flat()).toEqual(model)
    expect(list.first).toBe(model[0])
    if (list.arrays.length > 1) expect(list.arrays.map(({ length }) => length)).not.toContain(0)
  }
  for (const item of model) list.remove(item)
  expect([...list]).toEqual([])
  expect(list.first).toBeUndefined()
})

test('SortedList keeps the order of a queue, whose items come last and leave first', () => {
  const list = new SortedList<number>((a, b) => a < b)
  for (let n = 0; n < 5000; n++) {
    list.add(n)
    if (n >= 1500) list.remove(n - 1500)
  }
  expect([...list]).toEqual(Array.from({ length: 1500 }, (_, i) => 3500 + i))
})

function numbers(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
