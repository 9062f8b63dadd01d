import { expect, test } from 'vitest'
import { Outbox } from '../../../packages/core/src/redis/batching/outbox.js'

const endOfTurn = () => new Promise((resolve) => setImmediate(resolve))

test('what is due goes at the end of the turn in the order of asking, and charges before it', async () => {
  const outbox = new Outbox()
  const sent: string[] = []
  outbox.add(() => sent.push('decisions'))
  outbox.addFirst(() => sent.push('charges'))
  outbox.add(() => sent.push('others'))
  expect(sent).toEqual([])
  await endOfTurn()
  expect(sent).toEqual(['charges', 'decisions', 'others'])
})

test('a command that must not overtake what was asked for sends it first, once', async () => {
  const outbox = new Outbox()
  const sent: string[] = []
  outbox.add(() => sent.push('decisions'))
  outbox.flush()
  expect(sent).toEqual(['decisions'])
  await endOfTurn()
  expect(sent).toEqual(['decisions'])
})

test('charges have an order before that of the decisions that go with them, and after all that was sent', () => {
  const outbox = new Outbox()
  const orders: number[] = []
  for (let n = 0; n < 2; n++) {
    const { orderOfDue } = outbox
    outbox.addFirst((order) => orders.push(order))
    outbox.add(() => orders.push(orderOfDue))
    outbox.flush()
  }
  expect(orders).toEqual([...orders].sort((a, b) => a - b))
  expect(outbox.order).toBeGreaterThan(orders.at(-1) as number)
})
