// @ts-check
// What a tenant may use of a model: the limits that the three servers beside this file share.
import { compose, concurrency, fixedWindow, hashedKey, keyed, perMinute, tokenBucket } from '@sluice/core'

// Your database: hashes of API keys, whose tenants they are, and what these may spend.
const tenants = new Map([
  [hashedKey('sk-acme'), { id: 'acme', dollarsADay: 5 }],
  [hashedKey('sk-acme-2'), { id: 'acme', dollarsADay: 5 }],
  [hashedKey('sk-trial'), { id: 'trial', dollarsADay: 0.01 }],
])

/** The tenant of an API key. @param {string | undefined} authorization */
export function tenantOf(authorization) {
  const [, key] = /^Bearer +(\S+)$/i.exec(authorization ?? '') ?? []
  return key === undefined ? undefined : tenants.get(hashedKey(key))
}

// Dollars for a million tokens, which are microdollars for one.
const prices = new Map([
  ['small', { prompt: 0.15, completion: 0.6 }],
  ['large', { prompt: 2.5, completion: 10 }],
])

/**
 * In whole microdollars, rounded up: a request costs less than a cent.
 *
 * @param {string} model
 * @param {number} prompt
 * @param {number} completion
 */
export function priceOf(model, prompt, completion) {
  const price = prices.get(model) ?? { prompt: 0, completion: 0 }
  return Math.ceil(prompt * price.prompt + completion * price.completion)
}

/** Near enough for an estimate. @param {string} text */
export const tokensIn = (text) => Math.ceil(Buffer.byteLength(text) / 4)

/**
 * @typedef {object} Chat
 * @property {string} model
 * @property {{ role: string, content: string }[]} messages
 * @property {number} maxTokens
 * @property {number} promptTokens as estimated
 */

/**
 * What is understood of a body, and nothing else of it: `n: 100` would have the model respond a hundred times. Undefined
 * for any other body. A model that is made up would have a budget of its own.
 *
 * @param {unknown} body
 * @returns {Chat | undefined}
 */
export function chatIn(body) {
  const { model, messages, max_tokens = 1024, stream } = /** @type {Record<string, unknown>} */ (body ?? {})
  if (typeof model !== 'string' || !prices.has(model) || stream !== true) return undefined
  if (!Number.isInteger(max_tokens) || Number(max_tokens) < 1 || Number(max_tokens) > 4096) return undefined
  if (!Array.isArray(messages) || messages.length === 0 || messages.length > 200) return undefined
  /** @type {Chat['messages']} */
  const read = []
  let promptTokens = 0
  for (const { role, content } of messages.map((message) => message ?? {})) {
    if (!['system', 'user', 'assistant'].includes(role) || typeof content !== 'string') return undefined
    read.push({ role, content })
    promptTokens += tokensIn(content) + 4
  }
  return { model, messages: read, maxTokens: Number(max_tokens), promptTokens }
}

/** The money of a day is used up: a client that tried again would wait for hours. */
const outOfMoney = () =>
  /** @type {const} */ ({
    status: 429,
    headers: [
      ['Content-Type', 'application/json'],
      ['x-should-retry', 'false'],
    ],
    body: JSON.stringify({
      error: {
        type: 'insufficient_quota',
        message: 'The budget of the day is used up, or too small for this request.',
      },
    }),
    showsQuota: true,
  })

/**
 * The options of the limiter.
 *
 * @template Request
 * @param {import('@sluice/core').Store} store
 * @param {(request: Request) => Chat} chatOf the chat that was read of a request
 */
export function budgetFor(store, chatOf) {
  /** @typedef {import('@sluice/core').HttpContext<Request>} Context */
  /** @param {Request} _request @param {Context} context */
  const tenant = (_request, context) => tenantOf(context.header('authorization'))
  const byTenant = keyed('tenant', (/** @type {Request} */ request, context) => tenant(request, context)?.id)
  const byModel = compose(
    byTenant,
    keyed('model', (/** @type {Request} */ request) => chatOf(request).model),
  )
  /** @param {Request} request @param {Context} context */
  const microdollars = (request, context) => (tenant(request, context)?.dollarsADay ?? 0) * 1_000_000
  return /** @satisfies {object} */ ({
    name: 'chat',
    store,
    limits: [
      perMinute(60, { name: 'requests', key: byModel }),
      tokenBucket({ name: 'tokens', unit: 'tokens', refill: 20_000, every: '1m', estimate: 'cap', key: byModel }),
      fixedWindow({
        name: 'money',
        unit: 'microdollars',
        limit: microdollars,
        window: '1d',
        anchor: 'first-request',
        key: byTenant,
        respond: outOfMoney,
      }),
      concurrency({ name: 'at-once', limit: 4, key: byTenant }),
    ],
    cost: {
      // What is usual: what comes above it is charged while it streams.
      tokens: (/** @type {Request} */ request) => {
        const { promptTokens, maxTokens } = chatOf(request)
        return promptTokens + Math.min(maxTokens, 256)
      },
      // The most that is possible.
      microdollars: (/** @type {Request} */ request) => {
        const { model, promptTokens, maxTokens } = chatOf(request)
        return priceOf(model, promptTokens, maxTokens)
      },
    },
    headers: /** @type {const} */ (['draft-11', 'openai']),
  })
}
