import { once } from 'node:events'
import { connect } from 'node:net'
import { createInterface } from 'node:readline'

/**
 * Calls `onCommand` with each command of scripts and clients, as MONITOR shows it, until the caller ends that. Through a
 * socket: ioredis mistakes commands that arrive along with the first reply, or after a disconnect, for replies.
 */
export async function monitor(
  url: string,
  onCommand: (command: string[], isOfScript: boolean) => void,
): Promise<() => void> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname).setEncoding('latin1')
  const lines = createInterface({ input: socket })
  socket.write('MONITOR\r\n')
  await once(lines, 'line')
  lines.on('line', (line) => {
    const [, source, command = ''] = /^\+[\d.]+ \[\d+ (\S+)\] "(.*)"$/.exec(line) ?? []
    if (source !== undefined) onCommand(command.split('" "'), source === 'lua')
  })
  return () => socket.destroy()
}
