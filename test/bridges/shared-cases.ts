import { expect, test } from 'vitest'

/** What cases need of the store of a bridge. */
interface HitStore {
  increment(key: string): Promise<{ readonly totalHits: number }> | { readonly totalHits: number }
  decrement(key: string): Promise<void> | void
  resetKey(key: string): Promise<void> | void
  get(key: string): Promise<{ readonly totalHits: number } | undefined> | { readonly totalHits: number } | undefined
}

/** The cases of stores that express-rate-limit and hono-rate-limiter both have, by their names. */
export function casesOfStores(
  make: (setup?: {
    readonly options: { readonly skipFailedRequests: boolean }
  }) => Promise<{ readonly store: HitStore }>,
): void {
  test('sets the value to 1 on first call to `increment`', async () => {
    const { store } = await make()
    expect((await store.increment('ann')).totalHits).toBe(1)
  })

  test('increments the key for the store when `increment` is called', async () => {
    const { store } = await make()
    await store.increment('ann')
    expect((await store.increment('ann')).totalHits).toBe(2)
  })

  test('decrements the key for the store when `decrement` is called', async () => {
    const { store } = await make({ options: { skipFailedRequests: true } })
    await store.increment('ann')
    await store.increment('ann')
    await store.decrement('ann')
    expect((await store.increment('ann')).totalHits).toBe(2)
  })

  test('resets the count for a key in the store when `resetKey` is called', async () => {
    const { store } = await make()
    await store.increment('ann')
    await store.resetKey('ann')
    expect((await store.increment('ann')).totalHits).toBe(1)
  })

  test('resets the count for all keys in the store when `resetAll` is called [there is no `resetAll`]', async () => {
    expect('resetAll' in (await make()).store).toBe(false)
  })
}

/** The options of both that take hits back. */
interface TakingBack<Success> {
  readonly skipSuccessfulRequests?: boolean
  readonly skipFailedRequests?: boolean
  readonly requestWasSuccessful?: Success | (() => Promise<boolean>)
}

/**
 * The cases of both for hits that are taken back: options, the query of the request, and whether its hit is taken back. `isOk`:
 * whether a response has the status 200; `hasSuccess`: whether a request has `?success=1`.
 */
export function casesOfHitsTakenBack<Success>(
  isOk: Success,
  hasSuccess: Success,
): readonly [title: string, options: TakingBack<Success>, query: string, isTakenBack: boolean][] {
  return [
    [
      'should decrement hits when requests succeed and `skipSuccessfulRequests` is set to true',
      { skipSuccessfulRequests: true },
      '',
      true,
    ],
    [
      'should not decrement hits when requests fail and `skipSuccessfulRequests` is set to true',
      { skipSuccessfulRequests: true },
      'status=400',
      false,
    ],
    [
      'should decrement hits when requests succeed, `skipSuccessfulRequests` is set to true and a custom `requestWasSuccessful` method used (status)',
      { skipSuccessfulRequests: true, requestWasSuccessful: isOk },
      '',
      true,
    ],
    [
      'should not decrement hits when requests fail, `skipSuccessfulRequests` is set to true and a custom `requestWasSuccessful` method used (status)',
      { skipSuccessfulRequests: true, requestWasSuccessful: isOk },
      'status=400',
      false,
    ],
    [
      'should decrement hits when requests succeed, `skipSuccessfulRequests` is set to true and a custom `requestWasSuccessful` method used (query)',
      { skipSuccessfulRequests: true, requestWasSuccessful: hasSuccess },
      'success=1',
      true,
    ],
    [
      'should not decrement hits when requests fail, `skipSuccessfulRequests` is set to true and a custom `requestWasSuccessful` method used (query)',
      { skipSuccessfulRequests: true, requestWasSuccessful: hasSuccess },
      'success=0',
      false,
    ],
    [
      'should decrement hits when requests fail and `skipFailedRequests` is set to true',
      { skipFailedRequests: true },
      'status=400',
      true,
    ],
    [
      'should not decrement hits when requests succeed and `skipFailedRequests` is set to true',
      { skipFailedRequests: true },
      '',
      false,
    ],
    [
      'should decrement hits when requests fail, `skipFailedRequests` is set to true and a custom `requestWasSuccessful` method used that returns a promise',
      { skipFailedRequests: true, requestWasSuccessful: async () => false },
      '',
      true,
    ],
    [
      'should decrement hits when response emits an error and `skipFailedRequests` is set to true',
      { skipFailedRequests: true },
      'crash',
      true,
    ],
  ]
}
