// Sends requests, in a process of its own: a hundred connections, each with ten clients in turn.
import autocannon from 'autocannon'
import { CLIENT_HEADER } from '../contestants/http.js'
import { answer } from '../lib/child.js'

const CLIENTS_EACH = 10

answer({
  /** @param {{ port: number, connections: number, seconds: number, amount: number }} load so many if not 0, or so long */
  async send({ port, connections, seconds, amount }) {
    let made = 0
    const result = await autocannon({
      url: `http://127.0.0.1:${port}`,
      connections,
      ...(amount > 0 ? { amount } : { duration: seconds }),
      // It looks only so often, in ms, whether it is done.
      sampleInt: 100,
      setupClient(client) {
        const first = made++ * CLIENTS_EACH
        client.setRequests(
          Array.from({ length: CLIENTS_EACH }, (_, i) => ({
            method: 'GET',
            path: '/',
            headers: { [CLIENT_HEADER]: `${first + i}` },
          })),
        )
      },
    })
    if (result.non2xx > 0 || result.errors > 0) throw new Error(`${result.non2xx} refused, ${result.errors} errors`)
    return {
      requests: result.requests.total,
      seconds: result.duration,
      p50: result.latency.p50,
      p99: result.latency.p99,
      p999: result.latency.p99_9,
    }
  },
})
