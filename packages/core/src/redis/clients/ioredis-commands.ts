import type { Client } from './connection.js'

/**
 * Returns a function that makes ioredis commands with their text already encoded. By itself, the library processes the
 * arguments of a command four times, which for a batch takes longer than all other work in Node. Undefined if the
 * client does not support such commands; then its own are used.
 */
export function commandMaker(client: Client): ((command: readonly string[]) => Client) | undefined {
  const Command = commandClass(client)
  if (typeof Command?.prototype.toWritable !== 'function') return undefined
  return (parts) => {
    const command = new Command(parts[0], [], { replyEncoding: null })
    // A cluster finds the node by these arguments, and ioredis would send them by itself. `slice` instead of a rest
    // pattern: V8 comes to allocate arrays of rest patterns in old space, where they and their contents wait for a full
    // collection.
    command.args = parts.slice(1)
    const text = asText(parts)
    if (text !== undefined) command.toWritable = () => text
    return command
  }
}

/** Only the ioredis package exports its command class, and it is a dependency of the user, not of Sluice. */
function commandClass(client: Client): Client {
  if (typeof client.sendCommand !== 'function') return undefined
  let commandClient: Client
  const sendCommand = (command: Client) => {
    commandClient = command
  }
  Object.create(client, { sendCommand: { value: sendCommand } }).callBuffer('ping')
  return commandClient?.constructor
}

/** A command in Redis's protocol; undefined if it is not ASCII, as text lengths would then differ from byte lengths. */
function asText(parts: readonly string[]): string | undefined {
  let text = `*${parts.length}`
  for (let i = 0; i < parts.length; i++) {
    const part = parts[i] as string
    text += HEADS[part.length] ?? headOf(part.length)
    text += part
  }
  text += '\r\n'
  return Buffer.byteLength(text) === text.length ? text : undefined
}

/** What stands before a part of a length. Making it each time takes a third of the time of writing a command. */
const HEADS = Array.from({ length: 128 }, (_, length) => headOf(length))

function headOf(length: number): string {
  return `\r\n$${length}\r\n`
}
