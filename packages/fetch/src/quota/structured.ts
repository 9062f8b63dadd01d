/** An item of a list as RFC 9651 writes it: `"burst";q=100;w=60`, or `limit=100` of draft 7. */
export interface Item {
  /** Without its quotes. */
  readonly value: string
  readonly params: ReadonlyMap<string, string>
}

const MAX_ITEMS = 64

/** The items of a list. Lenient: what it cannot read is left out, as other items may be right. */
export function itemsIn(text: string | undefined): Item[] {
  if (text === undefined) return []
  return split(text, ',')
    .slice(0, MAX_ITEMS)
    .flatMap((part) => {
      const [value = '', ...params] = split(part, ';')
      if (value === '') return []
      return [{ value: unquoted(value), params: new Map(params.flatMap(paramIn)) }]
    })
}

function paramIn(text: string): [string, string][] {
  const equals = text.indexOf('=')
  return equals < 1 ? [] : [[text.slice(0, equals).trim().toLowerCase(), unquoted(text.slice(equals + 1).trim())]]
}

/** The parts between separators outside of quotes, trimmed. */
function split(text: string, separator: string): string[] {
  const parts: string[] = []
  let start = 0
  let isQuoted = false
  for (let i = 0; i < text.length; i++) {
    if (isQuoted && text[i] === '\\') i++
    else if (text[i] === '"') isQuoted = !isQuoted
    else if (text[i] === separator && !isQuoted) {
      parts.push(text.slice(start, i).trim())
      start = i + 1
    }
  }
  parts.push(text.slice(start).trim())
  return parts
}

function unquoted(text: string): string {
  return text.startsWith('"') ? text.replace(/^"|"$/g, '').replace(/\\(.)/g, '$1') : text
}
