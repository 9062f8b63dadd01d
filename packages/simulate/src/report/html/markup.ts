import { inLine } from '@sluice/core/internal'

/** Text that is HTML or SVG. Everything else is escaped before it becomes a part of it. */
export class Markup {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

export type Content = Markup | string | number | undefined | readonly Content[]

/**
 * HTML or SVG, in which each value is text, unless it is `Markup` itself. Characters that a terminal obeys, that change the
 * direction of text or that nobody sees are shown as escapes. In attributes, values stand in double quotes.
 */
export function markup(parts: TemplateStringsArray, ...values: readonly Content[]): Markup {
  return new Markup(parts.map((part, i) => part + (i < values.length ? textOf(values[i]) : '')).join(''))
}

function textOf(content: Content): string {
  if (content === undefined) return ''
  if (content instanceof Markup) return content.text
  if (typeof content === 'object') return content.map(textOf).join('')
  return inLine(String(content)).replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`)
}

/** JSON that ends no `<script>` around it and shows every character that is not seen. It parses as the same data. */
export function jsonMarkup(data: unknown): Markup {
  return new Markup(inLine(JSON.stringify(data)).replace(/[<>&]/g, (sign) => `\\u00${sign.charCodeAt(0).toString(16)}`))
}
