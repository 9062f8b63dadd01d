// What the bundled programs share. None has top-level await, which CommonJS has not.

/**
 * Starts a server on a free port, and requests paths of it.
 *
 * @param {import('node:http').Server} server
 * @param {string[]} paths one after the other
 * @returns {Promise<{ status: number, text: string }[]>}
 */
export async function responsesOf(server, ...paths) {
  await new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(undefined)))
  const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
  const responses = []
  for (const path of paths) {
    const response = await fetch(`http://127.0.0.1:${port}${path}`)
    responses.push({ status: response.status, text: await response.text() })
  }
  server.close()
  server.closeAllConnections()
  return responses
}

/** @param {() => Promise<void>} program */
export function main(program) {
  program().then(
    () => console.log('works'),
    (error) => {
      console.error(error)
      process.exit(1)
    },
  )
}
