// Sends requests, in a separate process, over a number of connections, each with its own clients in turn.
import autocannon from 'autocannon'
import { CLIENT_HEADER } from '../contestants/http.js'
import { answer } from '../lib/child.js'

answer({
  /**
   * @param {{ port: number, connections: number, clientsEach?: number, seconds: number, amount: number }} load so many
   *   requests if not 0, or so long
   */
  async send({ port, connections, clientsEach = 10, seconds, amount }) {
    let made = 0
    const result = await autocannon({
      url: `http://127.0.0.1:${port}`,
      connections,
      ...(amount > 0 ? { amount } : { duration: seconds }),
      // The interval in ms at which it checks whether it is done.
      sampleInt: 100,
      setupClient(client) {
        const first = made++ * clientsEach
        client.setRequests(
          Array.from({ length: clientsEach }, (_, i) => ({
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
