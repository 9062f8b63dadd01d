import type { Client } from './connection.js'

/**
 * How to make commands of a client of ioredis that are sent as text of ours. ioredis goes through the arguments of a
 * command four times, which for a batch takes longer than all else that Node does for it. Undefined where the client has no
 * such commands: then its own are sent.
 */
export function commandMaker(client: Client): ((command: readonly string[]) => Client) | undefined {
  const Command = commandClass(client)
  if (typeof Command?.prototype.toWritable !== 'function') return undefined
  return (parts) => {
    const command = new Command(parts[0], [], { replyEncoding: null })
    // What it goes by in a cluster, and what it would send by itself. Not the rest of a pattern: V8 comes to make such
    // arrays old from birth, and all that they name would be with them, for the next full collection.
    command.args = parts.slice(1)
    const text = asText(parts)
    if (text !== undefined) command.toWritable = () => text
    return command
  }
}

/** ioredis hands its class out only with the package, which is the user's and no dependency of ours. */
function commandClass(client: Client): Client {
  if (typeof client.sendCommand !== 'function') return undefined
  let made: Client
  const sendCommand = (command: Client) => {
    made = command
  }
  Object.create(client, { sendCommand: { value: sendCommand } }).callBuffer('ping')
  return made?.constructor
}

/** A command as Redis reads it; undefined if it is not ASCII, for there lengths of texts are not lengths in bytes. */
function asText(parts: readonly string[]): string | undefined {
  let text = `*${parts.length}\r\n`
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i] as string
    text += `$${part.length}\r\n${part}\r\n`
  }
  return Buffer.byteLength(text) === text.length ? text : undefined
}
