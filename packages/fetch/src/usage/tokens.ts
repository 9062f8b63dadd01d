import type { Units } from '@sluice/core'

/** The units of tokens that are known: of the request, of its response, and of both. */
export const TOKEN_UNITS = ['tokens', 'input-tokens', 'output-tokens'] as const

/** Tokens as a service counts them. */
interface Tokens {
  readonly input: number
  readonly output: number
}

function unitsOf({ input, output }: Tokens): Units {
  return { tokens: input + output, 'input-tokens': input, 'output-tokens': output }
}

const BYTES_PER_TOKEN = 4
/** No response uses more: a usage beyond it is a mistake. */
const MAX_USED = 1_000_000_000
/** In text within JSON, quotes have a backslash before them. */
const MAX_TOKENS = /(?<!\\)"max_(?:completion_|output_)?tokens"\s*:\s*(\d{1,8})\b/

/** Four bytes of a JSON body are a token, and the response has as many as the request lets it have. */
export function estimatedTokens(body: string | undefined): Units | undefined {
  if (body === undefined || !/^\s*\{/.test(body)) return undefined
  const input = Math.ceil(Buffer.byteLength(body) / BYTES_PER_TOKEN)
  return unitsOf({ input, output: Number(MAX_TOKENS.exec(body)?.[1] ?? 0) })
}

/**
 * Reads the usage of responses by OpenAI (chat completions, responses, embeddings) and Anthropic (messages), streamed or not.
 *
 * Later events of a stream replace what earlier ones have told.
 *
 * @see https://platform.openai.com/docs/api-reference/chat-streaming/streaming#chat_streaming-streaming-usage
 * @see https://platform.claude.com/docs/en/build-with-claude/streaming#event-types
 */
export function tokensReader(): (data: unknown) => Units | undefined {
  let [input, cached, output] = [0, 0, 0]
  return (data) => {
    const usage = usageIn(data)
    if (!usage) return undefined
    const told = [
      usage.prompt_tokens ?? usage.input_tokens ?? input,
      // What is read from a cache does not count in the limits of Anthropic, and is not among its input_tokens.
      usage.cache_creation_input_tokens ?? cached,
      usage.completion_tokens ?? usage.output_tokens ?? output,
    ]
    // A usage of nothing is none.
    if (!told.every(isUsed) || told.every((tokens) => tokens === 0)) return undefined
    ;[input, cached, output] = told as [number, number, number]
    return unitsOf({ input: input + cached, output })
  }
}

/** The usage of a response, or of an event: of it itself, or of the response or message in it. */
function usageIn(data: unknown): Record<string, unknown> | undefined {
  const { usage, response, message } = recordOf(data) ?? {}
  return recordOf(usage) ?? recordOf(recordOf(response)?.usage) ?? recordOf(recordOf(message)?.usage)
}

function isUsed(tokens: unknown): tokens is number {
  return Number.isSafeInteger(tokens) && (tokens as number) >= 0 && (tokens as number) <= MAX_USED
}

function recordOf(value: unknown): Record<string, unknown> | undefined {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
}
