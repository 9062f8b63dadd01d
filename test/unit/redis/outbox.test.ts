import { expect, test } from 'vitest'
import { Outbox } from '../../../packages/core/src/redis/batching/outbox.js'

const endOfTurn = () => new Promise((resolve) => setImmediate(resolve))

test('the outbox sends at the end of the turn, charges first, then in order of addition', async () => {
  const outbox = new Outbox()
  const sent: string[] = []
  outbox.add(() => sent.push('decisions'))
  outbox.addFirst(() => sent.push('charges'))
  outbox.add(() => sent.push('others'))
  expect(sent).toEqual([])
  await endOfTurn()
  expect(sent).toEqual(['charges', 'decisions', 'others'])
})

test('flush() sends what is due before a command, once', async () => {
  const outbox = new Outbox()
  const sent: string[] = []
  outbox.add(() => sent.push('decisions'))
  outbox.flush()
  expect(sent).toEqual(['decisions'])
  await endOfTurn()
  expect(sent).toEqual(['decisions'])
})

test('charges are ordered before the decisions sent with them, and after everything sent earlier', () => {
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
