// @ts-check
// The way of a response: from the model to the client, charged while it streams, and settled however it ends.
import { priceOf, tokensIn } from './budget.js'

const { MODEL_KEY = 'none', MODEL_TIMEOUT_MS = '120000' } = process.env
const { MODEL_URL = 'http://localhost:4000/v1/chat/completions' } = process.env

/**
 * The events of a response, as text. The first is empty, and comes when the model has begun: before that this rejects if
 * the model fails, so that the client gets a status. After that the client gets an event that says so.
 *
 * @param {import('@sluice/core').Verdict} verdict
 * @param {import('./budget.js').Chat} chat
 * @param {AbortSignal} stop aborts when the client leaves, or the response takes too long
 */
export async function* answer(verdict, chat, stop) {
  const meter = verdict.meter('tokens')
  const used = { prompt: 0, completion: 0 }
  let hasBegun = false
  try {
    stop.throwIfAborted()
    used.prompt = chat.promptTokens
    // What was charged for the prompt is used up.
    await meter.add(Math.min(used.prompt, verdict.units.tokens?.cost ?? 0))
    const response = await ask(chat, stop)
    if (!response.ok || !response.body) {
      // Nothing was produced. A model that fails later, or does not respond in time, may have worked.
      used.prompt = 0
      await response.body?.cancel()
      throw new Error(`the model responded ${response.status}`)
    }
    hasBegun = true
    yield ''
    for await (const event of eventsIn(response.body)) {
      const usage = usageIn(event)
      const tokens = tokensIn(event.choices?.[0]?.delta?.content ?? '')
      if (usage) Object.assign(used, usage)
      else used.completion += tokens
      const goesOn = await meter.add(tokens)
      yield `data: ${JSON.stringify(event)}\n\n`
      if (goesOn) continue
      // The tokens of the minute are used up: the response ends as one that reaches max_tokens.
      yield `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason: 'length' }] })}\n\n`
      break
    }
    yield 'data: [DONE]\n\n'
  } catch (error) {
    if (!hasBegun || stop.aborted) throw error
    yield `data: ${JSON.stringify({ error: { type: 'server_error', message: 'The model failed.' } })}\n\n`
  } finally {
    // Also when the client has left, the model has failed, or sent no usage: then it is what was counted.
    await verdict.settle({
      tokens: used.prompt + used.completion,
      microdollars: priceOf(chat.model, used.prompt, used.completion),
    })
  }
}

/** @param {import('./budget.js').Chat} chat @param {AbortSignal} signal */
function ask({ model, messages, maxTokens }, signal) {
  return fetch(MODEL_URL, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', Authorization: `Bearer ${MODEL_KEY}` },
    body: JSON.stringify({
      model,
      messages,
      max_tokens: maxTokens,
      stream: true,
      stream_options: { include_usage: true },
    }),
    signal,
  })
}

/**
 * The data of server-sent events.
 *
 * @param {ReadableStream<Uint8Array>} body
 * @returns {AsyncGenerator<any>}
 */
async function* eventsIn(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  try {
    let rest = ''
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      const lines = (rest + read.value).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) if (line.startsWith('data: {')) yield JSON.parse(line.slice('data: '.length))
    }
  } finally {
    // A failure would take the place of the end that the reader of these events wants.
    reader.cancel().catch(() => {})
  }
}

/** The usage of the last event, if it is one: a usage of nothing is none. @param {any} event */
function usageIn({ usage }) {
  const { prompt_tokens: prompt, completion_tokens: completion } = usage ?? {}
  return Number.isSafeInteger(prompt) && Number.isSafeInteger(completion) && prompt > 0 && completion >= 0
    ? { prompt, completion }
    : undefined
}

/**
 * A signal that aborts when the client leaves, and after MODEL_TIMEOUT_MS. `AbortSignal.any` of Node 20 may forget a timeout.
 *
 * @param {import('node:http').ServerResponse} res
 */
export function untilClosed(res) {
  const closing = new AbortController()
  const timer = setTimeout(() => closing.abort(), Number(MODEL_TIMEOUT_MS))
  const close = () => {
    clearTimeout(timer)
    closing.abort()
  }
  if (res.closed) close()
  else res.once('close', close)
  return closing.signal
}
