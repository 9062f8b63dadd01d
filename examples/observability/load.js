// @ts-check
// Load for the demo: clients within their limits, beyond them, and in the queue. Ends with Ctrl-C.
//
//   node load.js                # the demo on port 3000
//   PORT=8080 node load.js
import { setTimeout as sleep } from 'node:timers/promises'

const url = `http://localhost:${process.env.PORT ?? 3000}`

/** Paths of the demo, with the pause between two requests in ms. */
const CLIENTS = [
  { path: '/limited', everyMs: 100 },
  { path: '/several', everyMs: 400 },
  { path: '/costly?units=2', everyMs: 1500 },
  { path: '/together', everyMs: 250 },
  { path: '/queue', everyMs: 450 },
  { path: '/busy', everyMs: 700 },
  { path: '/reported', everyMs: 500 },
  { path: '/policies/search', everyMs: 1000 },
]

/** @param {{ path: string, everyMs: number }} client */
async function send({ path, everyMs }) {
  for (;;) {
    // Not awaited: a client sends its next request even when a response is slow.
    fetch(url + path)
      .then((response) => response.arrayBuffer())
      .catch((error) => console.error(`${path}: ${error.cause?.code ?? error.message}`))
    await sleep(everyMs)
  }
}

console.log(`asking ${url}`)
await Promise.all(CLIENTS.map(send))
