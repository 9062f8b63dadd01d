// @ts-check
// A stand-in for a service of language models: it counts, one token after the other, in OpenAI's format of chats.
//
//   node tokens/model.js        # on port 4000, for express.js, koa.js and fastify.js beside it
//
// The last message says how: "count to 300", "count to 300 without usage", or "fail".
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'

const { MS_PER_TOKEN = '20', PORT = '4000' } = process.env

/** For tests: streams under way, the most at once, and tokens so far. */
const stats = { running: 0, most: 0, tokens: 0 }

const server = createServer(async (req, res) => {
  if (req.url === '/stats') return void res.end(JSON.stringify(stats))
  const chat = /** @type {any} */ (await json(req))
  const prompt = String(chat.messages.at(-1).content)
  if (prompt.includes('fail')) return void res.writeHead(503).end()
  stats.running += 1
  stats.most = Math.max(stats.most, stats.running)
  res.once('close', () => {
    stats.running -= 1
  })
  await stream(res, chat, prompt)
})

/**
 * @param {import('node:http').ServerResponse} res
 * @param {{ max_tokens: number, stream_options?: { include_usage?: boolean } }} chat
 * @param {string} prompt
 */
async function stream(res, chat, prompt) {
  /** @param {object} event */
  const send = (event) => res.write(`data: ${JSON.stringify(event)}\n\n`)
  res.writeHead(200, { 'Content-Type': 'text/event-stream' })
  const wanted = Number(/\d+/.exec(prompt)?.[0] ?? 20)
  const length = Math.min(wanted, chat.max_tokens)
  for (let n = 1; n <= length && !res.closed; n++) {
    send({ choices: [{ index: 0, delta: { content: `${n} ` }, finish_reason: null }] })
    stats.tokens += 1
    await sleep(Number(MS_PER_TOKEN))
  }
  send({ choices: [{ index: 0, delta: {}, finish_reason: wanted > length ? 'length' : 'stop' }] })
  if (chat.stream_options?.include_usage && !prompt.includes('without usage')) {
    // A word is a token.
    const prompted = prompt.trim().split(/\s+/).length
    const usage = { prompt_tokens: prompted, completion_tokens: length, total_tokens: prompted + length }
    send({ choices: [], usage })
  }
  res.end('data: [DONE]\n\n')
}

server.listen(Number(PORT), () => console.log('ready'))
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => {
    server.close()
    server.closeAllConnections()
  })
}
